"""The message of figure 1 of [SPATIAL] on the forwarding table of its figure 3: it goes to interface I2.

The paper shows only the first vertices of its regions; the others are ours, chosen so that they stay simple polygons.
"""

# %% Figure 3: two interfaces, each with a predicate of two filters
import contrada as ct
from contrada import Constraint, Filter, Predicate, Region, Relation

CLOUD = Region([(10, 5), (7, 12), (13, 14)])  # the last vertex is ours
RESERVE = Region([(3, 2), (15, 40), (2, 38)])  # here too

f11 = Filter([Constraint("stock", "=", "MTK"), Constraint("price", "<", 100)])
f12 = Filter([Constraint("stock", "=", "DYS"), Constraint("price", ">", 200), Constraint("bubble", "=", True)])
f21 = Filter([Constraint("cloud", Relation.OVERLAPS, CLOUD), Constraint("pressure", "<", 1000)])
f22 = Filter([
    Constraint("warning", "=", "hazardous leak"),
    Constraint("area", Relation.DISJOINT, RESERVE),
    Constraint("concentration", ">", 100),
    Constraint("hazard", ">", 3),
])  # fmt: skip

table = ct.ForwardingTable()
table.subscribe("I1", Predicate([f11, f12]), key="predicate of I1")
table.subscribe("I2", Predicate([f21, f22]), key="predicate of I2")

# %% Figure 1: a message about a hazardous leak
message = {
    "warning": "hazardous leak",
    "area": Region([(23.1, 10.9), (30.3, 27.0), (48.0, 19.0), (41.5, 8.4)]),  # the last vertex is ours
    "concentration": 172,
    "hazard": 4,
}

# %% Where does it go, and why?
interfaces = table.match(message)
print(f"The message goes to {', '.join(sorted(map(str, interfaces)))}.\n")
for key in table:
    print(table.explain(message, key), end="\n\n")
