"""Makes C++ structs of our .proto files: make_messages.py [OPTIONS] OUT_H OUT_CPP PROTO...

Each message becomes a struct with a member for each field, and `fields`, which shows a visitor number,
name and member of each: all that reading and writing need (tandem/io/internal/wire.h and text.h).
"""

import argparse
import re

SCALARS = {"string": "std::string", "bytes": "std::string", "bool": "bool", "float": "float",
           "double": "double", "int32": "std::int32_t", "int64": "std::int64_t",
           "uint32": "std::uint32_t", "uint64": "std::uint64_t", "fixed64": "std::uint64_t",
           "fixed32": "Fixed32", "sint64": "Sint64"}


def camel(name):
    return "k" + "".join(part.capitalize() for part in name.split("_"))


class File:
    def __init__(self, text):
        text = re.sub(r"//[^\n]*", "", text)
        text = re.sub(r"\[[^\]]*\]", "", text)  # options
        self.tokens = re.findall(r'"[^"]*"|[\w.]+|[{}=;<>,]', text)
        self.at = 0

    def next(self):
        self.at += 1
        return self.tokens[self.at - 1]

    def expect(self, token):
        got = self.next()
        if got != token:
            raise ValueError(f"expected {token}, got {got}")

    def skip_statement(self):
        while self.next() != ";":
            pass

    def parse(self):
        messages, enums = [], []
        while self.at < len(self.tokens):
            token = self.next()
            if token == "message":
                messages.append(self.message())
            elif token == "enum":
                enums.append(self.enum())
            else:
                self.skip_statement()
        return messages, enums

    def enum(self):
        name, values = self.next(), []
        self.expect("{")
        while (token := self.next()) != "}":
            self.expect("=")
            values.append((token, self.next()))
            self.expect(";")
        return name, values

    def message(self):
        name = self.next()
        fields, nested = [], []
        self.expect("{")
        while (token := self.next()) != "}":
            if token == "message":
                nested.append(self.message())
            elif token == "reserved":
                self.skip_statement()
            elif token == "oneof":
                oneof = self.next()
                self.expect("{")
                while (kind := self.next()) != "}":
                    fields.append(self.field(kind, "", oneof))
            else:
                label = token if token in ("repeated", "optional") else ""
                fields.append(self.field(self.next() if label else token, label, ""))
        return name, fields, nested

    def field(self, kind, label, oneof):
        key = ""
        if kind == "map":
            self.expect("<")
            key = self.next()
            self.expect(",")
            kind = self.next()
            self.expect(">")
        name = self.next()
        self.expect("=")
        number = self.next()
        self.expect(";")
        return {"kind": kind, "key": key, "label": label, "oneof": oneof, "name": name,
                "number": number}


def member_type(field, enums):
    kind = SCALARS.get(field["kind"], field["kind"].replace(".", "::"))
    if field["key"]:
        return f"std::map<{SCALARS[field['key']]}, {kind}>"
    if field["label"] == "repeated":
        return f"std::vector<{kind}>"
    return kind if field["kind"] in SCALARS or field["kind"] in enums else f"Sub<{kind}>"


# Copying and destroying a message takes much code, which one file has for all.
SPECIAL = ["{name}()", "{name}(const {name}& other)", "{name}({name}&& other) noexcept",
           "{name}& operator=(const {name}& other)", "{name}& operator=({name}&& other) noexcept",
           "~{name}()"]


def write_message(message, enums, indent, out):
    name, fields, nested = message
    pad = "  " * indent
    out.append(f"{pad}struct {name} {{")
    out += [f"{pad}  {member.format(name=name)};" for member in SPECIAL]
    for inner in nested:
        write_message(inner, enums, indent + 1, out)
    for oneof in dict.fromkeys(f["oneof"] for f in fields if f["oneof"]):
        of = [f for f in fields if f["oneof"] == oneof]
        cases = ", ".join(f"{camel(f['name'])} = {f['number']}" for f in of)
        out.append(f"{pad}  enum class Case {{ kNone = 0, {cases} }};")
        out.append(f"{pad}  Case which_{oneof} = Case::kNone;")
    for f in fields:
        kind = member_type(f, enums)
        start = "" if kind.startswith(("std::", "Sub")) and not kind.endswith("_t") else "{}"
        out.append(f"{pad}  {kind} {f['name']}{start};")
    unused = "" if fields else "[[maybe_unused]] "
    out.append(f"{pad}  template <class Self, class Visitor>")
    out.append(f"{pad}  static void fields({unused}Self& self, {unused}Visitor& visit) {{")
    for f in fields:
        case = f", self.which_{f['oneof']}, Case::{camel(f['name'])}" if f["oneof"] else ""
        out.append(f"{pad}    visit({f['number']}, \"{f['name']}\", self.{f['name']}{case});")
    out.append(f"{pad}  }}")
    out.append(f"{pad}}};")




def define_message(message, scope, out):
    name, _, nested = message
    for member in SPECIAL:
        at = member.index("(")
        arguments = member[at:].format(name=name)
        if "operator" in member:
            out.append(f"{scope}{name}& {scope}{name}::operator={arguments} = default;")
        else:
            out.append(f"{scope}{name}::{member[:at].format(name=name)}{arguments} = default;")
    for inner in nested:
        define_message(inner, f"{scope}{name}::", out)


def uses(message):
    """Messages that must be complete before this one: those of which it names a nested one."""
    _, fields, nested = message
    found = set()
    for f in fields:
        found.add(f["kind"].split(".")[0] if "." in f["kind"] else "")
    for inner in nested:
        found |= uses(inner)
    return found - {""}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--header", default="tandem/io/proto/messages.h", help="how OUT_H is included")
    parser.add_argument("--namespace", default="tandem::io::proto")
    parser.add_argument("--for-requests", action="store_true",
                        help="bytes are views of what was read, fixed64 is written as eight bytes")
    parser.add_argument("outputs", nargs=2)
    parser.add_argument("protos", nargs="+")
    options = parser.parse_args()
    if options.for_requests:
        SCALARS.update({"bytes": "std::string_view", "fixed64": "Fixed64"})
    messages, enums = [], []
    for path in options.protos:
        with open(path, encoding="utf-8") as file:
            some_messages, some_enums = File(file.read()).parse()
        messages += some_messages
        enums += some_enums
    # A message that names another's nested message comes after it.
    done, ordered = set(), []
    while len(ordered) < len(messages):
        for message in messages:
            if message[0] not in done and uses(message) <= done | {message[0]}:
                ordered.append(message)
                done.add(message[0])
    enum_names = {name for name, _ in enums}
    out = ["// Made by make_messages.py of the .proto files beside it.", "#pragma once", "",
           "#include <cstdint>", "#include <map>", "#include <string>", "#include <string_view>",
           "#include <vector>", "", '#include "tandem/io/internal/sub_message.h"', "",
           f"namespace {options.namespace} {{", ""]
    if options.namespace != "tandem::io::proto":
        out += [f"using io::proto::{name};" for name in ("EnumNames", "EnumValue", "Fixed32",
                                                         "Fixed64", "Sub")] + [""]
    for name, values in enums:
        out.append(f"enum {name} : std::int32_t {{")
        out += [f"  {value} = {number}," for value, number in values]
        out += ["};", f"inline constexpr EnumValue k{name}Values[] = {{"]
        out += [f'    {{"{value}", {number}}},' for value, number in values]
        out += ["};", f"inline EnumNames enum_names({name}) {{ return {{k{name}Values}}; }}", ""]
    out += [f"struct {message[0]};" for message in ordered] + [""]
    for message in ordered:
        write_message(message, enum_names, 0, out)
        out.append("")
    out.append(f"}}  // namespace {options.namespace}")
    definitions = ["// Made by make_messages.py of the .proto files.",
                   f'#include "{options.header}"', "", f"namespace {options.namespace} {{", ""]
    for message in ordered:
        define_message(message, "", definitions)
    definitions += ["", f"}}  // namespace {options.namespace}"]
    for path, lines in zip(options.outputs, (out, definitions)):
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
