"""Reads the profile of write_logs' training with XProf's own tools: read_profile.py LOGS OUT [DEVICE]."""

import json
import pathlib
import sys

from xprof.convert import raw_to_tool_data

LOGS, OUT = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])


def convert(path, tool, options=None):
    data, _ = raw_to_tool_data.xspace_to_tool_data([str(path)], tool, {"use_saved_result": False, **(options or {})})
    text = data.decode() if isinstance(data, bytes) else data
    (OUT / f"{tool.rstrip('@^')}.json").write_text(text)
    return json.loads(text)


def rows(table):
    """A gviz table as a list of dicts by column id."""
    names = [column["id"] for column in table["cols"]]
    return [dict(zip(names, [cell.get("v") for cell in row["c"]])) for row in table["rows"]]


def has_column(table, name):
    return any(column["id"] == name for column in table.get("cols", []))


def main():
    (path,) = (LOGS / "fit" / "train" / "plugins" / "profile").glob("*/*.xplane.pb")
    tools = raw_to_tool_data.xspace_to_tool_names([str(path)])
    print("tools:", tools)
    trace = convert(path, "trace_viewer")
    names = {event["name"] for event in trace["traceEvents"] if "name" in event}
    assert any("Conv2D" in name for name in names), sorted(names)[:50]
    planes = {event["args"]["name"] for event in trace["traceEvents"] if event.get("name") == "process_name"}
    assert planes == {"/host:CPU", *sys.argv[3:]}, planes
    overview = convert(path, "overview_page")
    assert "No step time measured" not in json.dumps(overview)
    pipeline = convert(path, "input_pipeline_analyzer")
    (steps,) = [rows(table) for table in pipeline if has_column(table, "stepnum")]
    print("steps:", [(step.get("stepnum"), step.get("stepTimeMs")) for step in steps])
    assert len(steps) >= 6, steps
    (stages,) = [rows(table) for table in pipeline if has_column(table, "opName")]
    print("stages:", [(stage["opName"], stage["count"]) for stage in stages])
    names = {stage["opName"].rpartition("::")[2] for stage in stages}
    assert {"Prefetch", "Batch"} <= names, names
    assert all(stage["category"] == "Preprocessing" for stage in stages), stages
    memory = convert(path, "memory_profile")
    host = memory["memoryProfilePerAllocator"]["host"]
    peak = int(host["profileSummary"]["peakBytesUsageLifetime"])
    print("memory:", {key: value["profileSummary"] for key, value in memory["memoryProfilePerAllocator"].items()})
    activities = {shot["activityMetadata"]["memoryActivity"] for shot in host["sampledTimelineSnapshots"]}
    assert peak > 0 and activities == {"ALLOCATION", "DEALLOCATION"}, (peak, activities)
    assert "memory_profile" in tools, tools
    ops = [row for table in convert(path, "framework_op_stats") if has_column(table, "type") for row in rows(table)]
    types = {op["type"] for op in ops}
    print("ops:", sorted(types))
    assert any("Conv2D" in kind for kind in types), sorted(types)


main()
print("profile: read by XProf")
