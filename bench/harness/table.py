"""The table that a person reads."""

from . import pairs

HEADINGS = ("row", "peer", "ours", "theirs", "unit", "ahead", "lowest..highest", "aim", "work")


def number(value):
    if value is None:
        return "-"
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def times(value):
    return "-" if value is None else f"{value:.2f}x"


def work(answer):
    """What an answer reports of the work done."""
    reported = []
    if "nodes" in answer:
        reported.append(f"{answer['nodes']:.0f} nodes")
    if "check" in answer:
        reported.append(f"result {answer['check']:.6g}")
    if "loss" in answer:
        reported.append(f"loss {answer['loss']:.2f}")
    return ", ".join(reported)


def aim(row, peer):
    if peer and peer.aim:
        return times(peer.aim)
    bound = "<=" if row.better == "lower" else ">="
    return f"{bound} {row.limit:g} {row.unit}" if row.limit else "-"


def line(row, result, taken, aim, answer, remark=""):
    """`taken`: the pairs that the result comes from. Their spread is that of how far we are ahead,
    or that of the figures where only one side was measured. `remark` goes to the last column."""
    both = [pairs.ratio(row, a["value"], b["value"]) for a, b in taken if a and b]
    single = [(a or b)["value"] for a, b in taken]
    low, high = min(both or single), max(both or single)
    spread = f"{low:.2f}..{high:.2f}" if both else f"{number(low)}..{number(high)}"
    return (
        result["name"], result["peer_name"] or "-", number(result["ours"]), number(result["peer"]),
        result["unit"], times(result["ratio"]), spread, aim,
        ", ".join(filter(None, (work(answer), remark))))


def mean_line(result, aim):
    return (result["name"], result["peer_name"], number(result["ours"]), "1", result["unit"],
            times(result["ratio"]), "-", times(aim), "")


def text(lines):
    rows = [HEADINGS, *lines]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADINGS))]
    left = (0, 1, 4, 8)  # columns of words
    out = []
    for row in rows:
        cells = (
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths)))
        out.append("  ".join(cells).rstrip())
    return "\n".join(out)
