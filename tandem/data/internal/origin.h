#pragma once

#include <string>

#include "tandem/data/element.h"

namespace tandem::data {

/// Puts into `names` what of an element may be a name, of a file say: its short scalar strings. A
/// reference to each, taken before a function takes the element over.
void note_names(const Element& element, Element& names);

/// For the line of an error, ` (made of "GIF?", from "photos/7.jpg")`: the printable ones of
/// `names`, and of those `before` that the input's elements were made of. Empty if there are none.
std::string told(const Element& names, const Element& before);

}  // namespace tandem::data
