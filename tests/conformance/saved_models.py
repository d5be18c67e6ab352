"""SavedModels between TensorFlow and Tandem: saved_models.py --td TD --python PYTHON --program PROGRAM --out OUT --report FILE [CASE...]

TensorFlow's models are called, trained and run by `td run` here, and saved again for TensorFlow; ours are loaded there.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys

import peer

HERE = pathlib.Path(__file__).parent


def run(command):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if result.returncode != 0:
        raise ValueError((result.stderr or result.stdout).strip()[-3000:])
    return result.stdout


def run_signatures(td, folder):
    """Through the command line; the program compares the values."""
    calls = json.loads((folder / "calls.json").read_text())
    for call in calls["calls"]:
        if "signature" not in call:
            continue
        command = [td, "run", "--saved-model", folder / "model", "--signature", call["signature"],
                   "--out", folder / "out", "--repeat", 0]
        for tag in calls.get("tags", []):
            command += ["--tag", tag]
        for name, value in call["kwargs"].items():
            command += ["--feed", f"{name}={folder / value['tensor']}"]
        run(command)
        for name in call["results"]:
            if not (folder / "out" / f"{name}_0.npy").exists():
                raise ValueError(f"td run wrote no {name}")


def expect_refusal(command, reason):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if result.returncode != 1 or reason not in result.stderr:
        raise ValueError(f"{command[1]} was to refuse because of '{reason}': {result.returncode}, "
                         f"{result.stderr.strip()[-500:]}")


def tensors(td, path):
    found = json.loads(run([td, "inspect", "--json", path]))["tensors"]
    return [tensor for tensor in found if tensor["name"] != "_CHECKPOINTABLE_OBJECT_GRAPH"]


def explain_and_convert(td, folder):
    """Each signature is explained; the variables go through other formats and come back."""
    calls = json.loads((folder / "calls.json").read_text())
    tags = [part for tag in calls.get("tags", []) for part in ("--tag", tag)]
    for signature in sorted({call["signature"] for call in calls["calls"] if "signature" in call}):
        command = [td, "explain", "--saved-model", folder / "model", "--signature", signature, *tags]
        if folder.name == "tensorflow_1_references" and signature == "serving_default":
            expect_refusal(command, "variables of TensorFlow 1 that are no resources")
            continue
        text = run(command)
        if "CPU:0" not in text:
            raise ValueError(f"td explain of {signature} names no device:\n{text[:500]}")
    variables = folder / "model" / "variables" / "variables"
    if not variables.with_name("variables.index").exists():
        return
    chain = [variables, folder / "v.safetensors", folder / "v.h5", folder / "v.npz"]
    if any(value["dtype"] == "string" for value in tensors(td, variables)):  # keys of tables
        expect_refusal([td, "convert", variables, chain[1]], "is string")
        if chain[1].exists():
            raise ValueError(f"{chain[1]} is there although it was refused")
        chain = [variables, chain[-1]]
    for source, target in zip(chain, chain[1:]):
        run([td, "convert", source, target])


# What the real TensorFlow reads of each model's variables, and what is in the last file of the chain.
COMPARE = """
import sys, numpy as np, tensorflow as tf
for folder in sys.argv[1:]:
    reader = tf.train.load_checkpoint(folder + "/model/variables/variables")
    wanted = {k: reader.get_tensor(k) for k in reader.get_variable_to_shape_map()
              if k != "_CHECKPOINTABLE_OBJECT_GRAPH"}
    with np.load(folder + "/v.npz") as found:
        good = set(found.files) == set(wanted) and all(
            # Texts are objects for TensorFlow.
            (found[k].dtype == v.dtype or (found[k].dtype.kind, v.dtype.kind) == ("S", "O"))
            and np.array_equal(found[k], v.astype(found[k].dtype)) for k, v in wanted.items())
    print("ok     " if good else "FAILED ", folder + ": td convert", len(wanted), "variables")
"""


def main():
    parser = argparse.ArgumentParser()
    for name in ("--td", "--python", "--program", "--out", "--report"):
        parser.add_argument(name, required=True, type=pathlib.Path)
    parser.add_argument("cases", nargs="*")
    args = parser.parse_args()
    peer.require(args.python)
    shutil.rmtree(args.out, ignore_errors=True)
    args.out.mkdir(parents=True)
    run([args.python, HERE / "export_saved_models.py", args.out, *args.cases])
    failed, count = 0, 0
    resaved, converted = [], []
    for folder in sorted(args.out.iterdir()):
        steps = [("call and train", [args.program, "check", folder])]
        again = folder / "again"
        calls = json.loads((folder / "calls.json").read_text())
        if "references" not in folder.name:
            again.mkdir()
            steps.append(("save again", [args.program, "resave", folder, again / "model"]))
        for what, command in steps:
            count += 1
            try:
                run(command)
                print(f"ok      {folder.name}: {what}")
            except ValueError as error:
                failed += 1
                print(f"FAILED  {folder.name}: {what}: {error}")
        count += 1
        try:
            run_signatures(args.td, folder)
            print(f"ok      {folder.name}: td run")
        except ValueError as error:
            failed += 1
            print(f"FAILED  {folder.name}: td run: {error}")
        count += 1
        try:
            explain_and_convert(args.td, folder)
            print(f"ok      {folder.name}: td explain and td convert")
            if (folder / "v.npz").exists():
                converted.append(folder)
        except ValueError as error:
            failed += 1
            print(f"FAILED  {folder.name}: td explain and td convert: {error}")
        if (again / "model" / "saved_model.pb").exists():
            (again / "calls.json").write_text(json.dumps({**calls, "values": str(folder)}))
            resaved.append(again)
    if not args.cases:
        run([args.program, "write", args.out / "ours"])
        resaved += sorted((args.out / "ours").iterdir())
    if converted:
        lines = run([args.python, "-c", COMPARE, *converted]).splitlines()
        print(*lines, sep="\n")
        count += len(lines)
        failed += sum(line.startswith("FAILED") for line in lines)
    if resaved:
        result = subprocess.run([args.python, HERE / "check_saved_models.py", *resaved], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        print(result.stdout, end="")
        lines = [line for line in result.stdout.splitlines() if line.startswith(("ok", "FAILED"))]
        count += len(lines)
        failed += sum(line.startswith("FAILED") for line in lines)
        if result.returncode not in (0, 1) or not lines:
            failed += 1
            print(result.stderr[-3000:])
    with open(args.report, "a", encoding="utf-8") as file:
        file.write(f"{count} {failed}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
