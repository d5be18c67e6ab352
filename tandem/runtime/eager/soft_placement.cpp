#include "tandem/runtime/eager/soft_placement.h"

#include <mutex>
#include <set>
#include <utility>

#include "tandem/core/log.h"
#include "tandem/graph/resource_manager.h"
#include "tandem/runtime/runtime.h"

namespace tandem {
namespace {

class LoggedOnce final : public Resource {
 public:
  bool is_new(const std::string& about) {
    std::lock_guard lock(mutex_);
    return reported_.insert(about).second;
  }
  std::string debug_string() const override { return "reported soft placements"; }

 private:
  std::mutex mutex_;
  std::set<std::string> reported_;
};

}  // namespace

void report_soft_placement(Runtime& runtime, const std::string& line, const std::string& about) {
  if (line.empty()) return;
  ResourceManager& resources = runtime.resources(runtime.default_device());
  const Ref<Resource> reported = resources.lookup_or_create(
      "_runtime", "soft_placement", [] { return Ref<Resource>(make_ref<LoggedOnce>()); });
  if (static_cast<LoggedOnce&>(*reported).is_new(about)) log(LogLevel::kWarning, line);
}

}  // namespace tandem
