"""`Dialect`: how an environment talks and what its verbs may do, chosen once when it is made.

The state is the same in every dialect: a goal and an inventory. What differs is the book, the
verbs with their rules, how things are put into words, and what an index of a task means. Ours is
here; `compat` has AgentGym's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from typing import TypeVar

from agentgym_envs.actions import Grammar
from agentgym_envs.errors import InvalidTask
from agentgym_envs.textcraft.actions import VERBS, admissible
from agentgym_envs.textcraft.file_book import book_of_files
from agentgym_envs.textcraft.minecraft_data import book_of_version
from agentgym_envs.textcraft.observation import first_observation
from agentgym_envs.textcraft.planner import Planner, planner_of
from agentgym_envs.textcraft.recipe_files import FileRecipe, read_recipes
from agentgym_envs.textcraft.recipes import RecipeBook, default_book
from agentgym_envs.textcraft.tasks import BookTasks, default_tasks, tasks_of_book
from agentgym_envs.textcraft.world import TextCraftWorld

_Book = TypeVar("_Book")


@dataclass(frozen=True)
class Dialect:
    """One way of talking about a world.

    Attributes:
        book: the recipes.
        grammar: the verbs.
        prompt: name of the file with the rules of the world.
        first: the observation of a new world, given the goal in words.
        admissible: commands that would be done now, in canonical form.
        tasks: all tasks of the book.
        planner: makes plans in these verbs.
        goal_of_index: the goal of an index of a task; None if an index counts the task set.
    """

    book: RecipeBook
    grammar: Grammar
    prompt: str
    first: Callable[[TextCraftWorld, str], str]
    admissible: Callable[[TextCraftWorld], list[str]]
    tasks: Callable[[], BookTasks]
    planner: Callable[[], Planner]
    goal_of_index: Callable[[int], str] | None = None

    def rules(self) -> str:
        """The rules of the world, which the action format follows with the verbs."""
        return _text(self.prompt)


def own_dialect(recipes_dir: str | None, minecraft_version: str | None) -> Dialect:
    """The dialect of this package.

    Args:
        recipes_dir: see `own_book`.
        minecraft_version: see `own_book`.
    """
    book = own_book(recipes_dir, minecraft_version)
    if book is default_book():
        tasks: Callable[[], BookTasks] = default_tasks
    else:
        tasks = functools.cache(lambda: tasks_of_book(book))
    return Dialect(
        book=book,
        grammar=Grammar(VERBS),
        prompt="prompt.md",
        first=first_observation,
        admissible=admissible,
        tasks=tasks,
        planner=lambda: planner_of(book),
    )


def own_book(recipes_dir: str | None, minecraft_version: str | None) -> RecipeBook:
    """The recipes that an environment's arguments ask for.

    Args:
        recipes_dir: a folder of the game's recipe files, or None.
        minecraft_version: else, a version of the game; None for that of the package's own table.

    Raises:
        InvalidTask: the folder cannot be read or no book can be made of it.
        UnknownName, Unsupported: there is no such version, or it needs an extra.
    """
    if recipes_dir is not None:
        return book_of_folder(recipes_dir, book_of_files)
    if minecraft_version is None or minecraft_version == default_book().version:
        return default_book()
    return book_of_version(minecraft_version)


def book_of_folder(recipes_dir: str, book_of: Callable[[tuple[FileRecipe, ...]], _Book]) -> _Book:
    """What `book_of` makes of the recipe files of a folder.

    Raises:
        InvalidTask: the folder cannot be read or no book can be made of it.
    """
    files = read_recipes(recipes_dir)
    try:
        return book_of(files)
    except ValueError as error:
        raise InvalidTask(f"no recipe book can be made of {recipes_dir!r}: {error}") from None


@functools.cache
def _text(name: str) -> str:
    return resources.files("agentgym_envs.textcraft").joinpath(name).read_text("utf-8")
