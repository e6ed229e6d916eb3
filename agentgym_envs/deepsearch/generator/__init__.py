"""Makes the embedded corpus and its questions out of facts.

`sources` reads the facts' packages, `countries`, `elements` and `places` the facts, `phrasings*`
hold all our sentences, `corpus` writes the passages, `makers` the questions, `splits` keeps the
splits apart, `checks` asks the retriever, and `build` does it all.
"""
