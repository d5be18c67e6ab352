#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace tandem::io {

/// JSON from outside. Keys stand in the file's order. Throws DataLossError, naming the text `name`,
/// if it is no JSON, if an object has a key twice, or if values are nested deeper than any format
/// needs. Takes time linear in the text.
nlohmann::ordered_json parse_checked_json(std::string_view text, const std::string& name);

}  // namespace tandem::io
