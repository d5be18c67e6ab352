"""The language of the case files: one line is one case, or a sweep of cases.

    OP [attr=value]... | input input... | [flag]...

README.md describes it for people; this module reads lines, expands sweeps and makes the input
values. It needs NumPy and ml_dtypes only, and knows nothing of TensorFlow.
"""

import ast
import hashlib
import itertools
import re
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np

DTYPES = {
    "bool": np.dtype(np.bool_),
    "int8": np.dtype(np.int8),
    "int16": np.dtype(np.int16),
    "int32": np.dtype(np.int32),
    "int64": np.dtype(np.int64),
    "uint8": np.dtype(np.uint8),
    "uint16": np.dtype(np.uint16),
    "uint32": np.dtype(np.uint32),
    "uint64": np.dtype(np.uint64),
    "half": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float": np.dtype(np.float32),
    "double": np.dtype(np.float64),
    "complex64": np.dtype(np.complex64),
    "complex128": np.dtype(np.complex128),
    "string": np.dtype(object),
    # TensorFlow's quantised integers, as it shows them to NumPy.
    "qint8": np.dtype([("qint8", np.int8)]),
    "quint8": np.dtype([("quint8", np.uint8)]),
    "qint16": np.dtype([("qint16", np.int16)]),
    "quint16": np.dtype([("quint16", np.uint16)]),
    "qint32": np.dtype([("qint32", np.int32)]),
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
FLOATS = ("half", "bfloat16", "float", "double")
COMPLEX = ("complex64", "complex128")
QUANTIZED = ("qint8", "quint8", "qint16", "quint16", "qint32")

FLAGS = {"grad", "grad2", "tol", "atol", "fails", "exact", "nonumeric", "numeric", "upstream",
         "runs", "graph", "noshape", "ignore", "ulps", "anycode"}


class CaseError(Exception):
    """A line that cannot be read; the message names the file and line."""


@dataclass
class Spec:
    """One input as written: kind is `value`, `list`, `var`, `novar`, `ref` or `noref`."""
    kind: str
    text: str
    dtype: str = ""
    shape: tuple = ()
    generator: str = ""
    arguments: tuple = ()
    literal: object = None
    items: list = field(default_factory=list)

    @property
    def is_literal(self):
        return self.kind == "value" and self.generator == "literal"


@dataclass
class Case:
    family: str
    line: str
    op: str
    attributes: dict
    inputs: list
    flags: dict

    @property
    def id(self):
        digest = hashlib.sha256(self.line.encode()).hexdigest()
        return f"{self.op}-{digest[:8]}"

    def random(self, *salt):
        """A generator that depends on nothing but this line and what the values are for."""
        return random_of(self.line, *salt)


def random_of(*salt):
    text = "/".join(map(str, salt))
    seed = np.frombuffer(hashlib.sha256(text.encode()).digest(), dtype="<u4")
    return np.random.RandomState(seed)


def split_outside_brackets(text, separator=None):
    """Splits at white space (or at `separator`) that no bracket and no quote encloses."""
    parts, depth, quoted, current = [], 0, False, ""
    for character in text:
        if character == '"':
            quoted = not quoted
        if not quoted:
            depth += character in "[({"
            depth -= character in "])}"
            at_separator = character.isspace() if separator is None else character == separator
            if depth == 0 and at_separator:
                parts.append(current)
                current = ""
                continue
        current += character
    if depth or quoted:
        raise CaseError(f"unbalanced brackets or quotes in: {text}")
    parts.append(current)
    return [part.strip() for part in parts if part.strip() or separator is not None]


def expand(line):
    """All lines that a line with `T={a,b}` bindings and `{a,b}` sweeps stands for."""
    sections = split_outside_brackets(line, "|")
    if len(sections) > 3:
        raise CaseError(f"more than three sections in: {line}")
    sections += [""] * (3 - len(sections))
    bindings, rest = [], []
    for word in split_outside_brackets(sections[2]):
        match = re.fullmatch(r"([A-Z][A-Za-z]*)=\{(.*)\}", word)
        if match:
            bindings.append((match[1], split_outside_brackets(match[2], ",")))
        else:
            rest.append(word)
    body = " | ".join([sections[0], sections[1], " ".join(rest)]).strip(" |")
    if not sections[1] and rest:
        body = f"{sections[0]} | | {' '.join(rest)}"
    for choice in itertools.product(*[values for _, values in bindings]):
        bound = body
        for (name, _), value in zip(bindings, choice):
            bound = re.sub(rf"\${name}\b", lambda _: value, bound)
        if "$" in bound:
            raise CaseError(f"unbound name in: {bound}")
        yield from expand_braces(bound)


def expand_braces(text):
    start = text.find("{")
    if start < 0:
        yield text
        return
    depth = 0
    for end in range(start, len(text)):
        depth += text[end] == "{"
        depth -= text[end] == "}"
        if depth == 0:
            break
    else:
        raise CaseError(f"unbalanced braces in: {text}")
    for choice in split_outside_brackets(text[start + 1:end], ","):
        yield from expand_braces(text[:start] + choice + text[end + 1:])


def parse_literal(text):
    """A number, string or nested list; nan and inf are numbers, true and false bools."""
    words = {"nan": "__nan__", "inf": "__inf__", "true": "True", "false": "False"}
    quoted = re.split(r'("[^"]*")', text)
    for index in range(0, len(quoted), 2):
        quoted[index] = re.sub(r"\b(nan|inf|true|false)\b", lambda m: words[m[1]], quoted[index])
    names = {"__nan__": float("nan"), "__inf__": float("inf")}
    try:
        return eval("".join(quoted), {"__builtins__": {}}, names)  # Our own case files only.
    except Exception as error:
        raise CaseError(f"not a literal: {text}") from error


def parse_input(text):
    if text.startswith("("):
        items = [parse_input(item) for item in split_outside_brackets(text[1:-1])]
        return Spec("list", text, items=items)
    match = re.fullmatch(r"(var|novar|ref|noref)\((.*)\)", text)
    if match:
        inner = parse_input(match[2])
        inner.kind, inner.text = match[1], text
        return inner
    match = re.fullmatch(r"([a-z]+[0-9]*)(?:\[([0-9,\s]*)\])?(?::(.+)|=(.+))?", text)
    if not match or match[1] not in DTYPES:
        raise CaseError(f"not an input: {text}")
    dtype, dims, generator, literal = match.groups()
    shape = tuple(int(dim) for dim in (dims or "").split(",") if dim.strip())
    if literal is not None:
        if dims is not None:
            raise CaseError(f"a literal has its own shape: {text}")
        return Spec("value", text, dtype, (), "literal", (), parse_literal(literal))
    if dims is None:
        raise CaseError(f"an input needs a shape or a literal: {text}")
    arguments = ()
    if generator is None:
        generator = default_generator(dtype)
    match = re.fullmatch(r"([a-z_]+)(?:\((.*)\))?", generator)
    if not match:
        raise CaseError(f"not a generator: {text}")
    if match[2] is not None:
        arguments = tuple(parse_literal(part) for part in match[2].split(","))
    return Spec("value", text, dtype, shape, match[1], arguments)


def default_generator(dtype):
    if dtype == "bool":
        return "bool"
    if dtype == "string":
        return "words"
    if dtype.startswith(("uint", "quint")):
        return "ints(0,10)"
    return "ints(-9,10)" if dtype.startswith(("int", "qint")) else "normal"


def parse_case(family, line):
    sections = split_outside_brackets(line, "|")
    sections += [""] * (3 - len(sections))
    head = split_outside_brackets(sections[0])
    attributes = {}
    for word in head[1:]:
        name, _, value = word.partition("=")
        attributes[name] = value
    flags = {}
    for word in split_outside_brackets(sections[2]):
        name, equals, value = word.partition("=")
        if name not in FLAGS:
            raise CaseError(f"unknown flag {word} in: {line}")
        flags[name] = value if equals else True
    inputs = [parse_input(word) for word in split_outside_brackets(sections[1])]
    return Case(family, line, head[0], attributes, inputs, flags)


def read_cases(path):
    """The cases of a file, sweeps expanded; a case that stands there twice is an error."""
    cases, seen, pending = [], {}, ""
    for number, raw in enumerate(path.read_text().splitlines(), 1):
        text = pending + raw.split("#", 1)[0].strip()
        if text.endswith("\\"):
            pending = text[:-1] + " "
            continue
        pending = ""
        if not text:
            continue
        try:
            for line in expand(text):
                line = re.sub(r"\s+", " ", line).strip()
                if line in seen:
                    raise CaseError(f"the same case as on line {seen[line]}: {line}")
                seen[line] = number
                cases.append(parse_case(path.stem, line))
        except CaseError as error:
            raise CaseError(f"{path.name}:{number}: {error}") from None
    return cases


# --- Values -----------------------------------------------------------------------------------

SPECIAL_FLOATS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0]


def special_values(dtype):
    numpy_dtype = DTYPES[dtype]
    if dtype in FLOATS:
        limits = ml_dtypes.finfo(numpy_dtype)
        return SPECIAL_FLOATS + [float(limits.max), float(limits.min), float(limits.tiny)]
    if dtype in COMPLEX:
        return [0, 1, -1, 1j, -1j, 2.5 - 0.5j, complex(np.inf, 0), complex(np.nan, 1)]
    if dtype == "bool":
        return [False, True]
    if dtype in QUANTIZED:
        numpy_dtype = numpy_dtype[0]
    limits = np.iinfo(numpy_dtype)
    values = [limits.min, limits.max, 0, 1, limits.min + 1, limits.max - 1, 2, 7]
    return values if limits.min == 0 else values + [-1, -2, -7]


def generate(spec, random):
    """The value of a spec as an array of its dtype (strings: objects of bytes)."""
    if spec.generator == "literal":
        return literal_array(spec)
    shape, dtype = spec.shape, DTYPES[spec.dtype]
    count = int(np.prod(shape, dtype=np.int64))
    values = GENERATORS[spec.generator](random, count, shape, spec.dtype, *spec.arguments)
    if spec.dtype == "string":
        result = np.empty(count, dtype=object)
        result[:] = values
        return result.reshape(shape)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(values).reshape(shape).astype(dtype)


def literal_array(spec):
    if spec.dtype == "string":
        array = np.array(spec.literal, dtype=object)
        flat = [item.encode(errors="surrogateescape") for item in array.reshape(-1)]
        result = np.empty(len(flat), dtype=object)
        result[:] = flat
        return result.reshape(array.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        if isinstance(spec.literal, (list, float, complex, bool)) or spec.dtype in QUANTIZED:
            return np.array(spec.literal).astype(DTYPES[spec.dtype])
        return np.array(spec.literal, dtype=DTYPES[spec.dtype])


def both_parts(make):
    """Makes a real generator serve complex dtypes, by drawing both parts."""
    def generator(random, count, shape, dtype, *arguments):
        values = make(random, count, *arguments)
        return values + 1j * make(random, count, *arguments) if dtype in COMPLEX else values
    return generator


def normal(random, count, mean=0.0, deviation=1.0):
    return mean + deviation * random.standard_normal(count)


def uniform(random, count, low=0.0, high=1.0):
    return random.uniform(low, high, count)


def positive(random, count):
    return np.abs(random.standard_normal(count)) + 0.1


def off_zero(random, count):
    """Normal, but no nearer to zero than 0.2: safe for differences across a kink there."""
    values = random.standard_normal(count)
    return values + np.where(values < 0, -0.2, 0.2)


def distinct(random, count):
    """Values in shuffled order, each at least 0.1 from the next: no ties, no kinks."""
    steps = (np.arange(count) - count / 2) * 0.25
    return random.permutation(steps + uniform(random, count, 0, 0.15))


def integers(random, count, low=-9, high=10):
    return random.randint(low, high, count)


def nonzero_integers(random, count, shape, dtype, high=9):
    values = random.randint(1, high + 1, count)
    return values if dtype.startswith("uint") else values * random.choice([-1, 1], count)


def cycle(values):
    return lambda count: [values[index % len(values)] for index in range(count)]


def special(random, count, shape, dtype):
    values = cycle(special_values(dtype))(count)
    return np.array(values) if dtype in QUANTIZED else np.array(values, dtype=DTYPES[dtype])


def steps(random, count, shape, dtype, start=0, step=1):
    return start + step * np.arange(count)


def probabilities(random, count, shape, dtype):
    values = random.uniform(0.1, 1.0, count).reshape(shape)
    return values / values.sum(axis=-1, keepdims=True)


def onehot(random, count, shape, dtype):
    rows = np.eye(shape[-1])[random.randint(0, shape[-1], count // shape[-1])]
    return rows


def positive_definite(random, count, shape, dtype):
    """Self-adjoint matrices with eigenvalues from 1 on, in the last two axes."""
    values = random.standard_normal(count).reshape(shape)
    if dtype in COMPLEX:
        values = values + 1j * random.standard_normal(count).reshape(shape)
    return values @ values.conj().swapaxes(-1, -2) + np.eye(shape[-1])


def regular(random, count, shape, dtype):
    """Matrices that are far from singular, with eigenvalues and pivots well apart."""
    values = both_parts(uniform)(random, count, shape, dtype, -1.0, 1.0).reshape(shape)
    steps = 2.0 + 1.5 * np.arange(shape[-1])
    return values + np.eye(shape[-2], shape[-1]) * steps


def words(random, count, shape, dtype):
    return [bytes(random.randint(97, 123, random.randint(0, 6)).tolist()) for _ in range(count)]


def encoded(kind):
    """Images' bytes, one drawing after the other."""
    def generator(random, count, shape, dtype, *arguments):
        import encoded_images
        return [encoded_images.MAKERS[kind](random, *arguments) for _ in range(count)]
    return generator


GENERATORS = {
    **{kind: encoded(kind) for kind in ("jpeg", "png", "bmp", "gif")},
    "normal": both_parts(normal),
    "uniform": both_parts(uniform),
    "positive": both_parts(positive),
    "off_zero": both_parts(off_zero),
    "distinct": both_parts(distinct),
    "ints": lambda random, count, shape, dtype, *a: integers(random, count, *a),
    "nonzero": nonzero_integers,
    "bool": lambda random, count, shape, dtype: random.randint(0, 2, count).astype(bool),
    "special": special,
    "range": steps,
    "permutation": lambda random, count, shape, dtype: random.permutation(count),
    "full": lambda random, count, shape, dtype, value: np.full(count, value),
    "probabilities": probabilities,
    "onehot": onehot,
    "words": words,
    "positive_definite": positive_definite,
    "regular": regular,
}


def parse_attribute(kind, text):
    """An attribute's value in the shape that the records store, by its type in the op's
    definition: a dtype is its name, a shape a list (-1 is an unknown dimension, `?` no rank)."""
    if kind.startswith("list("):
        inner = split_outside_brackets(text.strip()[1:-1], ",")
        return [parse_attribute(kind[5:-1], part) for part in inner if part]
    if kind == "bool":
        if text not in ("true", "false"):
            raise CaseError(f"not a bool: {text}")
        return text == "true"
    if kind == "int":
        return int(text)
    if kind == "float":
        return float(text)
    if kind == "string":
        return ast.literal_eval(text) if text.startswith('"') else text
    if kind == "type":
        if text not in DTYPES and text not in ("resource", "variant"):
            raise CaseError(f"not a dtype: {text}")
        return text
    if kind == "shape":
        dims = [part for part in text[1:-1].split(",") if part.strip()]
        return None if text == "?" else [int(part) for part in dims]
    raise CaseError(f"attributes of type {kind} cannot be written in a case")
