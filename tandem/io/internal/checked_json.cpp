#include "tandem/io/internal/checked_json.h"

#include <set>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/placement/internal/json_reason.h"

namespace tandem::io {

nlohmann::ordered_json parse_checked_json(std::string_view text, const std::string& name) {
  using Json = nlohmann::ordered_json;
  constexpr int kMaxDepth = 200;
  std::vector<std::set<std::string>> open;  // the keys so far of each object around
  const auto check = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > kMaxDepth)
      throw DataLossError(cat(name, " is damaged: its values are nested too deep."));
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key && !open.back().insert(value.get<std::string>()).second)
      throw DataLossError(cat(name, " is damaged: the key '", value.get<std::string>(),
                              "' is twice in one object."));
    return true;
  };
  try {
    return Json::parse(text, check);
  } catch (const Json::exception& error) {
    throw DataLossError(cat(name, " is no JSON: ", json_reason(error)));
  }
}

}  // namespace tandem::io
