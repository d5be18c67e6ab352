#include <set>
#include <string>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/device/device_spec.h"
#include "tandem/graph/expand_functions.h"
#include "tandem/graph/function.h"

namespace tandem::passes {
namespace {

using Part = DeviceSpec (*)(const DeviceSpec&);

// Whether two of the requests within a call contradict each other.
class Span {
 public:
  explicit Span(Part part) : part_(part) {}

  bool add(const std::string& device) {
    if (device.empty() || device == last_) return different_;
    last_ = device;
    try {
      const DeviceSpec asked = part_(DeviceSpec::parse(device));
      // Those that leave parts open agree with whatever fills them in.
      const DeviceSpec both = asked.merged_into(seen_), other = seen_.merged_into(asked);
      if (!(both == other)) different_ = true;
      seen_ = both;
    } catch (const Error&) {  // the placer will report it
    }
    return different_;
  }

  bool look_into(const Node& node, const std::string& device) {
    for (const auto& [name, value] : node.attrs()) {
      if (const auto* function = value.get_if<FunctionRef>()) {
        if (look_into(**function, device)) return true;
      } else if (const auto* list = value.get_if<std::vector<FunctionRef>>()) {
        for (const FunctionRef& one : *list) {
          if (look_into(*one, device)) return true;
        }
      }
    }
    return false;
  }

 private:
  bool look_into(const Function& function, const std::string& device) {
    if (!looked_into_.insert({&function, device}).second) return false;
    for (const auto& node : function.body().nodes()) {
      if (node->kind() == NodeKind::kArg || node->kind() == NodeKind::kConst) continue;
      std::string inner = node->requested_device();
      if (inner.empty()) {
        inner = device;
      } else if (!device.empty()) {
        try {
          inner = DeviceSpec::parse(inner).merged_into(DeviceSpec::parse(device)).to_string();
        } catch (const Error&) {
        }
      }
      if (add(inner) || look_into(*node, inner)) return true;
    }
    return false;
  }

  Part part_;
  DeviceSpec seen_;
  std::string last_;
  bool different_ = false;
  std::set<std::pair<const Function*, std::string>> looked_into_;
};

bool spans(const Node& node, const std::string& device, Part part) {
  if (!calls_functions(node.kind())) return false;
  Span span(part);
  span.add(device);
  return span.look_into(node, device);
}

}  // namespace

bool spans_devices(const Node& node, const std::string& device) {
  return spans(node, device, [](const DeviceSpec& spec) { return spec; });
}

bool spans_tasks(const Node& node, const std::string& device) {
  return spans(node, device, [](const DeviceSpec& spec) {
    DeviceSpec task = spec;
    task.type.reset();
    task.index.reset();
    return task;
  });
}

}  // namespace tandem::passes
