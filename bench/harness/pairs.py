"""Measuring a row in turns, and what comes out of the turns."""

import math

from . import sides


def ratio(row, ours, peer):
    """How far we are ahead: above 1 is ahead, whatever the direction."""
    return ours / peer if row.better == "higher" else peer / ours


def agree(row, ours, peer, same_graph=True):
    """Both sides must have done the same work."""
    if same_graph and "nodes" in ours and "nodes" in peer and ours["nodes"] != peer["nodes"]:
        raise sides.Failure(f"{row.name}: we executed {ours['nodes']} nodes, the peer {peer['nodes']}")
    if "check" in ours and "check" in peer:
        if not math.isclose(ours["check"], peer["check"], rel_tol=row.tolerance):
            raise sides.Failure(f"{row.name}: we computed {ours['check']}, the peer {peer['check']}")


def take_turns(row, ours, peer, peer_row, count, same_graph=True):
    """`count` pairs of answers, after one turn that is not counted unless each is a process of its
    own. A side that is None gives None. Sides with the `same_graph` must execute as many nodes."""
    pairs = []
    for turn in range(1 if row.one_shot else 0, count + 1):
        left = ours.run(row.ours or row.name) if ours else None
        right = peer.run(peer_row) if peer else None
        if left and right:
            agree(row, left, right, same_graph)
        if turn > 0:
            pairs.append((left, right))
    return pairs


def median_pair(row, pairs):
    """The pair in the middle by how far we are ahead; without two sides, by the value."""

    def key(pair):
        left, right = pair
        if left and right:
            return ratio(row, left["value"], right["value"])
        return (left or right)["value"]

    return sorted(pairs, key=key)[len(pairs) // 2]


def result(row, pair, peer_name):
    """A row as build/bench/NAME.json has it."""
    left, right = pair
    both = left and right
    return {
        "name": row.name,
        "unit": row.unit,
        "ours": left["value"] if left else None,
        "peer": right["value"] if right else None,
        "peer_name": peer_name if right else None,
        "ratio": ratio(row, left["value"], right["value"]) if both else None,
        "better": row.better,
    }


def mean(results, counted, peer_name):
    """The row `geomean`: the geometric mean of how far we are ahead of `peer_name` in the rows whose
    names are `counted`; None where there is no such row."""
    ratios = [r["ratio"] for r in results
              if r["name"] in counted and r["peer_name"] == peer_name and r["ratio"]]
    if not ratios:
        return None
    value = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return {"name": "geomean", "unit": "x", "ours": value, "peer": 1.0, "peer_name": peer_name,
            "ratio": value, "better": "higher"}
