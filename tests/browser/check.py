#!/usr/bin/env python3
"""Opens a page that td wrote in a headless Chromium: check.py PAGE --td PROGRAM --out FOLDER.

The page itself is loaded once for the screenshot (FOLDER/PAGE.png), and once with a script added
that notes errors and uses every control. Nothing may be loaded from elsewhere, and nothing may be
said on the console. Exit code 77: there is no Chromium.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

DEVICES = """{"devices": [
  {"name": "CPU:0", "flops": "100G", "bandwidth": "20GB/s", "overhead": "1us"},
  {"name": "GPU:0", "flops": "5T", "bandwidth": "300GB/s", "overhead": "5us",
   "link": "10GB/s", "latency": "10us", "memory": "16MiB"},
  {"name": "GPU:1", "flops": "5T", "bandwidth": "300GB/s", "overhead": "5us",
   "link": "10GB/s", "latency": "10us", "memory": "16MiB"}
]}
"""

# Runs before all else in the page.
NOTE_ERRORS = """<script>
window.errors = [];
window.addEventListener("error", e => errors.push(e.message || "load of " + e.target.tagName), true);
window.addEventListener("unhandledrejection", e => errors.push(String(e.reason)));
</script>"""

# Looks at the first picture: it fits the window, and its text can be read. Then uses everything that can be used.
USE = """<script>
try {
  {
    const svg = document.querySelector("svg.graph"), window_box = svg.getBoundingClientRect();
    const drawn = svg.querySelector("g.view").getBoundingClientRect();
    const shown = svg.querySelectorAll("g.node, g.group").length;
    if (drawn.left < window_box.left - 1 || drawn.right > window_box.right + 1 ||
        drawn.top < window_box.top - 1 || drawn.bottom > window_box.bottom + 1)
      errors.push("the first picture does not fit its window");
    if (shown < 3 || shown > 120) errors.push("the first picture has " + shown + " boxes");
    const letters = svg.querySelector("g.view text").getBoundingClientRect().height;
    if (letters < 5) errors.push("text is " + letters + " pixels high");
  }
  for (const button of document.querySelectorAll("button")) { button.click(); button.click(); }
  for (const head of document.querySelectorAll("th")) { head.click(); head.click(); }
  for (const input of document.querySelectorAll("input")) {
    input.value = "dense"; input.dispatchEvent(new Event("input"));
    if (input.className === "find" && !document.querySelector("g.found"))
      errors.push("nothing was found");
    input.value = ""; input.dispatchEvent(new Event("input"));
  }
  const mouse = {clientX: 200, clientY: 200, bubbles: true, cancelable: true, ctrlKey: true};
  for (const part of document.querySelectorAll("svg.graph, .bars")) {
    part.dispatchEvent(new WheelEvent("wheel", {deltaY: -100, ...mouse}));
    part.dispatchEvent(new PointerEvent("pointerdown", mouse));
    window.dispatchEvent(new PointerEvent("pointermove", {...mouse, clientX: 260}));
    window.dispatchEvent(new PointerEvent("pointerup", mouse));
  }
  const svg = document.querySelector("svg.graph"), view = svg.querySelector("g.view");
  if (!view.getAttribute("transform")) errors.push("the graph does not move");
  const boxes = () => svg.querySelectorAll("g.node, g.group:not(.open)").length;
  // Each group that can be seen opens where it is clicked, and closes again.
  const folded = [...svg.querySelectorAll("g.group:not(.open)")].map(g => g.item);
  for (const item of folded.slice(0, 5)) {
    const click = () => {
      const group = [...svg.querySelectorAll("g.group")].find(g => g.item === item);
      group.dispatchEvent(new PointerEvent("pointerdown", mouse));
      window.dispatchEvent(new PointerEvent("pointerup", mouse));
      group.dispatchEvent(new MouseEvent("click", mouse));
    };
    const before = boxes();
    click();
    if (boxes() !== before - 1 + item.kids.length) errors.push("a group did not open");
    click();
    if (boxes() !== before) errors.push("a group did not close");
  }
  // Enter goes to the first node that was found, through all groups around it.
  const find = document.querySelector("input.find");
  find.value = WANTED; find.dispatchEvent(new Event("input"));
  find.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter"}));
  const found = [...svg.querySelectorAll("g.node.found")].find(g => g.item.name === WANTED);
  if (!found) errors.push("Enter did not reveal " + WANTED);
} catch (e) { errors.push(String(e)); }
document.documentElement.dataset.result = errors.length ? errors.join("; ") : "fine";
</script>"""


def node(name, op, inputs, device="", attrs=()):
    lines = [f"node {{ name: '{name}' op: '{op}'"]
    lines += [f"  input: '{i}'" for i in inputs]
    if device:
        lines.append(f"  device: '{device}'")
    lines += [f"  attr {{ key: '{key}' value {{ {value} }} }}" for key, value in attrs]
    return "\n".join(lines) + " }\n"


FLOAT = ("T", "type: DT_FLOAT")
# Of each of two towers; a layer has two nodes, so graph_large has 50,002.
LAYERS = {"explain": 6, "explain_large": 800, "graph": 6, "graph_large": 12500}


def network(layers):
    """Two towers that begin on GPUs; after each product something runs on the CPU."""
    square = "shape { dim { size: 512 } dim { size: 512 } }"
    dtype = ("dtype", "type: DT_FLOAT")
    text = node("x", "Placeholder", [], attrs=[dtype, ("shape", square)])
    ends = []
    for tower in range(2):
        value = "x"
        for layer in range(layers):
            name = f"tower_{tower}/dense_{layer}"
            text += node(f"{name}/MatMul", "MatMul", [value, "x"], f"/GPU:{tower}", [FLOAT])
            where = "/CPU:0" if layer % 4 == 1 else f"/GPU:{tower}"
            text += node(f"{name}/Relu", "Relu", [f"{name}/MatMul"], where, [FLOAT])
            value = f"{name}/Relu"
        ends.append(value)
    return text + node("sum", "AddV2", ends, attrs=[FLOAT])


def command_of(page, td, folder):
    """Writes what td reads; returns the command that writes page.html."""
    graph, devices = os.path.join(folder, "towers.pbtxt"), os.path.join(folder, "devices.json")
    with open(graph, "w", encoding="utf-8") as file:
        file.write(network(LAYERS[page]))
    with open(devices, "w", encoding="utf-8") as file:
        file.write(DEVICES)
    html = os.path.join(folder, "page.html")
    if page.startswith("graph"):
        with open(html, "w", encoding="utf-8") as file:
            subprocess.run([td, "graph", graph, "--html"], check=True, stdout=file)
    else:
        subprocess.run([td, "explain", graph, "--devices", devices, "--html", html], check=True)
    return html


def wanted(page):
    """A node that lies deep within folded groups."""
    return f"tower_1/dense_{LAYERS[page] * 2 // 3}/Relu"


def browse(chromium, folder, html, *options):
    command = [chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
               "--no-first-run", "--disable-background-networking", "--disable-component-update",
               "--disable-extensions", "--disable-sync", "--mute-audio", "--enable-logging=stderr",
               f"--user-data-dir={folder}/profile", "--window-size=1400,2600", *options,
               "file://" + html]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)


def console_lines(stderr):
    return [line for line in stderr.splitlines() if ":CONSOLE" in line]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("page", choices=list(LAYERS))
    parser.add_argument("--td", required=True)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium:  # a build without a browser passes; nothing else can show a script's errors
        print("skipped: there is no chromium to open the page with (Debian package chromium)")
        return 77
    os.makedirs(options.out, exist_ok=True)
    out = os.path.abspath(options.out)
    with tempfile.TemporaryDirectory() as folder:
        html = command_of(options.page, os.path.abspath(options.td), folder)
        with open(html, encoding="utf-8") as file:
            text = file.read()
        shutil.copy(html, os.path.join(out, options.page + ".html"))
        elsewhere = re.findall(r"""(?:src|href)=["'](?!data:)[^"']*|https?://[^\s"'<]*""", text)
        if elsewhere:
            print("the page refers to", elsewhere)
            return 1
        picture = os.path.join(out, options.page + ".png")
        seen = browse(chromium, folder, html, f"--screenshot={picture}", "--virtual-time-budget=5000")
        said = console_lines(seen.stderr)
        used = os.path.join(folder, "used.html")
        with open(used, "w", encoding="utf-8") as file:
            file.write(text.replace("<head>", "<head>" + NOTE_ERRORS, 1)
                       .replace("</body>", USE.replace("WANTED", f'"{wanted(options.page)}"') + "</body>", 1))
        dumped = browse(chromium, folder, used, "--dump-dom", "--virtual-time-budget=5000")
        said += console_lines(dumped.stderr)
    result = re.search(r'data-result="([^"]*)"', dumped.stdout)
    if said or not result or result.group(1) != "fine":
        print("console:", *said, sep="\n  ")
        print("result:", result.group(1) if result else "the page's end was not reached")
        return 1
    if os.path.getsize(picture) < 10_000:
        print("the screenshot is empty")
        return 1
    print("fine; see", picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
