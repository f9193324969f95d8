"""How experience changes a memory: rules, prototypes, conjunctions, cases, regimes, and what is done at rest."""
