"""Compares the order of the members of td::keras' option structs with the real Keras' arguments."""

import inspect
import pathlib
import re
import sys

import keras

ROOT = pathlib.Path(__file__).resolve().parents[2]
STRUCT = re.compile(r"struct (?:TANDEM_EXPORT )?(\w+)Options(?: : [^{]*)? \{(.*?)\n\};", re.DOTALL)
MEMBER = re.compile(r"[\w:<>,\s*()&]+?\s(\w+)")
MODULES = (keras.layers, keras.callbacks, keras.losses, keras.metrics, keras.optimizers,
           keras.optimizers.schedules, keras.initializers, keras.regularizers, keras.constraints,
           keras.applications)
FUNCTIONS = {
    "Compile": keras.Model.compile,
    "Fit": keras.Model.fit,
    "Evaluate": keras.Model.evaluate,
    "Predict": keras.Model.predict,
    "ImageDataset": keras.utils.image_dataset_from_directory,
    "TextDataset": keras.utils.text_dataset_from_directory,
    "AudioDataset": keras.utils.audio_dataset_from_directory,
    "TimeseriesDataset": keras.utils.timeseries_dataset_from_array,
    "PadSequences": keras.utils.pad_sequences,
}
# Not the options of Keras' class of that name, but those that all losses share.
EXCEPTIONS = {"Loss"}


def option_structs():
    for header in sorted((ROOT / "tandem" / "keras").rglob("*.h")):
        if "internal" in header.parts:
            continue
        text = re.sub(r"//[^\n]*", "", header.read_text(encoding="utf-8"))
        for match in STRUCT.finditer(text):
            declarations = (" ".join(d.split("=")[0].split()) for d in match.group(2).split(";"))
            found = (MEMBER.fullmatch(d) for d in declarations)
            yield match.group(1), header.relative_to(ROOT), [m.group(1) for m in found if m]


def theirs(name):
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    return next((getattr(m, name) for m in MODULES if hasattr(m, name)), None)


compared = 0
problems = []
for name, header, members in option_structs():
    of_keras = None if name in EXCEPTIONS else theirs(name)
    if of_keras is None:
        continue
    compared += 1
    arguments = list(inspect.signature(of_keras).parameters)
    common = [m for m in members if m in arguments]
    ordered = sorted(common, key=arguments.index)
    if common != ordered:
        problems.append(f"{header}: {name}Options has {', '.join(common)}; Keras has {', '.join(ordered)}")
print("\n".join(problems))
print(f"{compared} option structs compared with Keras {keras.__version__}, {len(problems)} in another order")
sys.exit(bool(problems) or compared < 50)
