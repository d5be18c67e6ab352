#pragma once

#include <string>
#include <string_view>

namespace tandem::io {

/// What a file that is no GraphDef is instead, and what to do: "a model that Keras saved. …", known
/// by how it begins, else by its name; "" if it is not known. Of a GraphDef's bytes it may be
/// wrong.
std::string other_format(std::string_view bytes, const std::string& path);

}  // namespace tandem::io
