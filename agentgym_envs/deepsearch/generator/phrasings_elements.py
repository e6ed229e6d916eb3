"""Our sentences about chemical elements and their isotopes. `phrasings` tells the format."""

ELEMENTS = """
## Symbol and atomic number
say
The chemical symbol of {e} is {symbol}, and its atomic number is {number}.
{E} has the symbol {symbol} and the atomic number {number}.
With the symbol {symbol}, {e} is element number {number}.
The element {e} is written {symbol} and has the atomic number {number}.
Chemists write {symbol} for {e}; its atomic number is {number}.
{E} ({symbol}) bears the atomic number {number} in the periodic table.
ask symbol | {name} symbol atomic number
What is the chemical symbol of {e}?
Which symbol stands for {e}?
How do chemists abbreviate {e}?
Which letters denote {e} in chemistry?
What symbol does {e} have in the periodic table?
By which chemical symbol is {e} known?
In a formula, how is {e} written?
ask number | {name} symbol atomic number
What is the atomic number of {e}?
Which atomic number does {e} have?
How many protons does an atom of {e} contain?
Under which number does {e} stand in the periodic table?
What number does {e} have among the elements?
What number in the periodic table belongs to {e}?
How many protons are in the nucleus of {e}?
inverse symbol | {value} symbol
the element with the symbol {value}
the element that chemists write {value}
the element whose chemical symbol is {value}
the element denoted by {value}
the element abbreviated {value}
the element known by the symbol {value}
inverse number | atomic number {value}
the element with the atomic number {value}
the element whose atomic number is {value}
the element that has {value} protons
the element number {value} of the periodic table
the element that bears the atomic number {value}
the element with {value} protons in its nucleus

## Registry number
say
In the registry of the Chemical Abstracts Service (CAS), {e} has the number {cas}.
The CAS registry number of {e} is {cas}.
{E} is listed by the Chemical Abstracts Service under {cas} (CAS number).
CAS, the Chemical Abstracts Service, registers {e} as {cas}.
The number of {e} in the CAS registry is {cas}.
Suppliers of chemicals identify {e} by its CAS number {cas}.
ask cas | {name} CAS registry number
What is the CAS registry number of {e}?
Under which CAS number is {e} registered?
Which number does the Chemical Abstracts Service give to {e}?
What CAS number does {e} have?
By which CAS registry number do suppliers identify {e}?
Which entry of the CAS registry, by number, is {e}?
In a catalog of chemicals, which CAS number marks {e}?

## Place in the periodic table
say
{E} stands in period {period} of the periodic table, in the {block}-block.
In the periodic table {e} belongs to period {period} and to the {block}-block.
{E} is an element of period {period} and of the {block}-block of the periodic table.
The periodic table has {e} in period {period}, {block}-block.
The place of {e} in the periodic table is in period {period}, within the {block}-block.
In row {period} of the periodic table (its period), {e} is part of the {block}-block.
say
It counts among the {series}.
It is one of the {series}.
It is classed with the {series}.
Its series is that of the {series}.
It belongs to the {series}.
Together with similar elements it forms the {series}.
say
Its group is group {group}.
It is in group {group}.
The group, or column, is number {group}.
In the table's columns it is found in group {group}.
Its column is group {group}.
The elements of its column form group {group}.
ask series | {name} place in the periodic table series
To which series of elements does {e} belong?
Among which series of elements does {e} count?
With which series of elements is {e} classed?
Which series in the periodic table is {e} part of?
What series of chemical elements includes {e}?
What kind of element, by series, is {e}?
As a member of which series is {e} listed?

## Discovery
say
{E} was discovered in {discovery_year} by {discoverer}.
{discoverer} discovered {e} in {discovery_year}.
The discovery of {e} in {discovery_year} is credited to {discoverer}.
In {discovery_year}, {discoverer} discovered {e}.
Credit for the discovery of {e} ({discovery_year}) goes to {discoverer}.
{E} owes its discovery in {discovery_year} to {discoverer}.
say
The place was {discovery_place}.
That was in {discovery_place}.
It happened in {discovery_place}.
The discovery was made in {discovery_place}.
The work was done in {discovery_place}.
Its place of discovery is {discovery_place}.
ask discoverer | {name} discovery
Who discovered {e}?
To whom is the discovery of {e} credited?
Who gets the credit for discovering {e}?
Name the discoverer of {e}.
By whom was {e} discovered?
Which chemist or physicist discovered {e}?
Whose name is tied to the discovery of {e}?
ask discovery_year | {name} discovery
In which year was {e} discovered?
When was {e} discovered?
What is the year of the discovery of {e}?
In what year was the discovery of {e} made?
What year saw the discovery of {e}?
Name the year in which {e} was discovered.
Since which year has {e} been known to science?
ask discovery_place | {name} discovery
In which country was {e} discovered?
Where was {e} discovered, by country?
What country was the place of discovery of {e}?
Which country saw the discovery of {e}?
The discovery of {e} was made in which country?
Name the country where {e} was discovered.
Work in which country led to the discovery of {e}?
link discovery_place
the country where {e} was discovered
the country in which {e} was discovered
the country that saw the discovery of {e}
the country where the discovery of {e} was made
the country that was the place of discovery of {e}
the country of the discovery of {e}

## Melting and boiling
say
{E} melts at {melting} ({melting_c}).
The melting point of {e} is {melting}, that is {melting_c}.
At {melting} ({melting_c}) solid {e} becomes liquid.
{E} has a melting point of {melting} or {melting_c}.
Solid {e} melts once it is heated to {melting} ({melting_c}).
The temperature at which {e} melts is {melting}, in Celsius {melting_c}.
say
It boils at {boiling}.
Its boiling point is {boiling}.
The boiling point is {boiling}.
Boiling starts at {boiling}.
It turns to gas at {boiling}.
At {boiling} it boils.
ask melting | {name} melting point kelvin
What is the melting point of {e} in kelvins?
At how many kelvins does {e} melt?
At what temperature in kelvins does {e} become liquid?
What temperature, in kelvins, melts {e}?
In kelvins, what is the melting point of {e}?
How many kelvins are needed to melt {e}?
Which temperature in kelvins must solid {e} reach to turn liquid?
ask boiling | {name} boiling point kelvin
What is the boiling point of {e} in kelvins?
At how many kelvins does {e} boil?
At what temperature in kelvins does {e} turn to gas?
What temperature, in kelvins, makes {e} boil?
In kelvins, what is the boiling point of {e}?
How many kelvins are needed to boil {e}?
Which temperature in kelvins must {e} reach to boil?

## Density
say
The density of {e} is {density}.
{E} has a density of {density}.
One measures a density of {density} for {e}.
For {e} the density is given as {density}.
At room temperature, {e} has the density {density}.
The tables list {e} with a density of {density}.
say
Its crystal structure is {structure}.
It crystallizes in a structure that is {structure}.
As a solid it forms crystals that are {structure}.
The crystals are {structure}.
The lattice of its crystals is {structure}.
Solid, it has a lattice that is {structure}.
ask density | {name} density
What is the density of {e} in grams per cubic centimeter?
How dense is {e}, in grams per cubic centimeter?
Which density does {e} have, in g/cm3?
How many grams does a cubic centimeter of {e} weigh?
In grams per cubic centimeter, what is the density of {e}?
What density is given for {e}, in g/cm3?
What is the mass in grams of one cubic centimeter of {e}?

## Electronegativity
say
On the Pauling scale {e} has an electronegativity of {electronegativity}.
The electronegativity of {e} is {electronegativity} on the Pauling scale.
Pauling's scale gives {e} an electronegativity of {electronegativity}.
{E} has the electronegativity {electronegativity} (Pauling).
The value of {e} on Pauling's scale of electronegativity is {electronegativity}.
In terms of electronegativity, {e} stands at {electronegativity} on the Pauling scale.
ask electronegativity | {name} electronegativity Pauling
What is the electronegativity of {e} on the Pauling scale?
Which value does {e} have on Pauling's scale of electronegativity?
How electronegative is {e} on the Pauling scale?
What electronegativity does the Pauling scale give to {e}?
On the Pauling scale, what is the electronegativity of {e}?
What Pauling electronegativity is listed for {e}?
Where on Pauling's scale of electronegativity does {e} stand?

## Electron configuration
say
The electron configuration of {e} is {configuration}.
{E} has the electron configuration {configuration}.
In its ground state, an atom of {e} has the electron configuration {configuration}.
The electrons of {e} are arranged as {configuration} (electron configuration).
{configuration} is the electron configuration of {e}.
For {e} the electron configuration reads {configuration}.
ask configuration | {name} electron configuration
What is the electron configuration of {e}?
How are the electrons of an atom of {e} arranged, as a configuration?
Which electron configuration does {e} have?
What is the ground-state electron configuration of {e}?
How does the electron configuration of {e} read?
Write down the electron configuration of {e}.
In the short notation with a noble gas in brackets, what is the electron configuration of {e}?

## Atomic weight
say
The standard atomic weight of {e} is {weight}.
{E} has an atomic weight of {weight}.
An average atom of {e} weighs {weight} (atomic weight).
For {e} the atomic weight is {weight}.
Tables give {e} the atomic weight {weight}.
The atomic weight of the element {e} is {weight}.
ask weight | {name} atomic weight
What is the atomic weight of {e}?
Which atomic weight does {e} have?
What standard atomic weight is listed for {e}?
How heavy is an average atom of {e}, in atomic mass units?
In unified atomic mass units, what is the atomic weight of {e}?
What value do tables give for the atomic weight of {e}?
By what atomic weight do chemists reckon with {e}?

## Specific heat
say
The specific heat capacity of {e} is {heat}.
{E} has a specific heat capacity of {heat}.
Its specific heat capacity is what {e} needs for warming up: {heat}.
For {e} the specific heat capacity is {heat}.
Tables give {e} the specific heat capacity {heat}.
Warming {e} takes a specific heat capacity of {heat}.
say
Its thermal conductivity is {conductivity}.
The thermal conductivity comes to {conductivity}.
It conducts heat with {conductivity}.
Heat is conducted at {conductivity}.
As a conductor of heat it has {conductivity}.
Its conductivity for heat is {conductivity}.
ask heat | {name} specific heat capacity
What is the specific heat capacity of {e}, in joules per gram and kelvin?
Which specific heat capacity does {e} have?
What specific heat capacity is listed for {e}?
How large is the specific heat capacity of {e}, in J/(g K)?
In joules per gram and kelvin, what is the specific heat capacity of {e}?
How many joules warm one gram of {e} by one kelvin?
What do tables give as specific heat capacity of {e}?

## Natural isotopes
say
The most abundant isotope of {e} in nature is {isotope}.
In nature, {e} consists for the greatest part of {isotope}.
Among the natural isotopes of {e}, {isotope} is the most abundant.
{isotope} makes up the greatest share of {e} in nature.
No isotope of {e} is more abundant in nature than {isotope}.
Natural {e} has {isotope} as its most abundant isotope.
say
Its share is {isotope_share}.
It accounts for {isotope_share} of the atoms.
Of all atoms, {isotope_share} are of this kind.
{isotope_share} of the atoms are of this kind.
The share of this isotope is {isotope_share}.
Such atoms are {isotope_share} of the whole.
ask isotope | {name} natural isotopes
What is the most abundant natural isotope of {e}?
Which isotope of {e} is the most abundant in nature?
Of which isotope does natural {e} mostly consist?
Which isotope makes up the greatest share of {e} in nature?
Name the most common isotope of {e} in nature.
Among the natural isotopes of {e}, which one is the most abundant?
An atom of {e} picked at random in nature is most likely which isotope?
"""

ISOTOPES = """
## Nuclear data
say
{E} is an isotope of {element} with a half-life of {half_life}.
The isotope {e} of {element} has a half-life of {half_life}.
With a half-life of {half_life}, {e} is an unstable isotope of {element}.
{E}, an isotope of {element}, decays with a half-life of {half_life}.
Half of a sample of {e}, an isotope of {element}, is gone after {half_life}, its half-life.
The half-life of {e}, an isotope of {element}, is {half_life}.
say
{E} is an isotope of {element} that makes up {abundance} of the element in nature.
In nature, {abundance} of {element} is the isotope {e}.
The isotope {e} has a share of {abundance} in natural {element}.
Natural {element} contains {abundance} of the isotope {e}.
{E}, an isotope of {element}, has a natural abundance of {abundance}.
Of the {element} found in nature, {abundance} is {e}.
say
It decays mainly by {decay}.
Its main mode of decay is {decay}.
Mostly it decays by {decay}.
The usual decay is {decay}.
The most frequent way of decay is {decay}.
Chiefly it undergoes {decay}.
say
It was discovered in {discovered}.
Its discovery dates from {discovered}.
The year of its discovery is {discovered}.
It has been known since {discovered}, when it was discovered.
Its first identification dates from {discovered}.
It was first identified in {discovered}.
say
The atomic mass is {mass}.
One atom has a mass of {mass}.
Its atomic mass comes to {mass}.
An atom of it weighs {mass}.
Its mass is {mass}.
The mass of the atom is {mass}.
ask half_life | {name} isotope half-life
What is the half-life of {e}?
How long is the half-life of {e}?
Which half-life does the isotope {e} have?
After what time has half of a sample of {e} decayed?
With what half-life does {e} decay?
What half-life is listed for {e}?
How long does it take until only half of some {e} is left?
ask discovered | {name} isotope discovered
In which year was {e} discovered?
When was the isotope {e} discovered?
What is the year of the discovery of {e}?
Since which year has the isotope {e} been known?
In what year was {e} first identified?
Which year saw the discovery of {e}?
From which year dates the discovery of the isotope {e}?
ask mass | {name} isotope atomic mass
What is the atomic mass of {e}?
Which atomic mass does the isotope {e} have?
How heavy is one atom of {e}, in unified atomic mass units?
What is the mass of an atom of {e}, in atomic mass units?
In unified atomic mass units, what is the mass of {e}?
Which mass, in atomic mass units, is listed for {e}?
What does an atom of {e} weigh, in atomic mass units?
"""
