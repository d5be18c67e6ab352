#pragma once

#include <functional>
#include <string>

#include "tandem/core/attr.h"
#include "tandem/graph/op_def.h"
#include "tandem/io/proto/messages.h"

namespace tandem::io {

/// The function that an attribute names.
using FindFunction = std::function<FunctionRef(const proto::NameAttrList&)>;

/// The attribute as the declaration wants it. Throws InvalidArgumentError if it is of another kind
/// or contradicts itself, UnimplementedError if it needs a dtype that Tandem or the op lacks.
AttrValue decode_attr(const AttrDef& def, const proto::AttrValue& proto,
                      const FindFunction& find_function);

/// A function's name in the library that is being written.
using NameFunction = std::function<std::string(const FunctionRef&)>;
/// The reverse.
void encode_attr(const AttrValue& value, const NameFunction& name_of, proto::AttrValue& proto);

}  // namespace tandem::io
