#include "tandem/io/internal/stand_in.h"

#include <cstdint>

#include "tandem/core/never_destroyed.h"

namespace tandem::io {

const OpDef& stand_in_op() {
  static const NeverDestroyed<OpDef> op([] {
    return OpDef::parse({.name = "UnsupportedOp",
                         .inputs = "input: Tin",
                         .outputs = "output: Tout",
                         .attrs = "Tin: list(type); Tout: list(type)",
                         .traits = {.stateful = true},
                         .doc = "A node of a GraphDef that cannot run."},
                        UINT32_MAX);
  });
  return *op;
}

const std::string* why_unsupported(const Node& node) {
  const AttrValue* why = node.attrs().find(kUnsupportedAttr);
  return why ? why->get_if<std::string>() : nullptr;
}

}  // namespace tandem::io
