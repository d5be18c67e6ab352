#include "tandem/device/device_types.h"

#include <algorithm>
#include <cctype>
#include <mutex>
#include <shared_mutex>
#include <vector>

namespace tandem {
namespace {

bool equal_but_for_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::toupper(x) == std::toupper(y);
  });
}

struct KnownTypes {
  std::shared_mutex mutex;
  std::vector<std::string> types{"CPU", "GPU", "TPU"};

  std::optional<std::string> find(std::string_view type) const {
    const auto found = std::find_if(types.begin(), types.end(), [&](const std::string& known) {
      return equal_but_for_case(known, type);
    });
    return found == types.end() ? std::nullopt : std::optional(*found);
  }
};

KnownTypes& known_types() {
  static KnownTypes* const known = new KnownTypes;  // names are parsed until the very end
  return *known;
}

}  // namespace

void add_device_type(std::string_view type) {
  KnownTypes& known = known_types();
  {
    const std::shared_lock lock(known.mutex);
    if (known.find(type)) return;
  }
  const std::unique_lock lock(known.mutex);
  if (!known.find(type)) known.types.emplace_back(type);
}

std::optional<std::string> known_device_type(std::string_view type) {
  KnownTypes& known = known_types();
  const std::shared_lock lock(known.mutex);
  return known.find(type);
}

}  // namespace tandem
