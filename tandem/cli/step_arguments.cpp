#include "tandem/cli/step_arguments.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <string>
#include <utility>

#include "tandem/cli/commands.h"
#include "tandem/cli/for_option.h"
#include "tandem/core/error.h"
#include "tandem/device/kernel_class.h"
#include "tandem/fs/file_system.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/op_registry.h"
#include "tandem/runtime/runtime.h"

namespace tandem::cli {
namespace {

// "x=32,784"; nothing behind "=" for a scalar; "?" where a size is not known.
void add_feed(const std::string& text, WholeGraph& step) {
  const auto fail = [&](const std::string& why) {
    throw UsageError(cat("--feed: ", text, ": ", why,
                         "give NAME=SHAPE, such as x=32,784, with ? for unknown sizes."));
  };
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) fail("");
  std::string name = text.substr(0, equals);
  if (name.ends_with(":0")) name.resize(name.size() - 2);
  std::vector<std::int64_t> dims, known;
  bool more = equals + 1 < text.size();
  for (std::size_t from = equals + 1; more;) {
    const std::size_t end = std::min(text.find(',', from), text.size());
    const std::string part = text.substr(from, end - from);
    std::int64_t dim = -1;
    const auto [rest, failure] = std::from_chars(part.data(), part.data() + part.size(), dim);
    const bool number = failure == std::errc() && rest == part.data() + part.size() && dim >= 0;
    if (!number && part != "?") fail(cat("'", part, "' is not a size; "));
    dims.push_back(number ? dim : -1);
    if (number) known.push_back(dim);
    more = end < text.size();
    from = end + 1;
  }
  try {
    static_cast<void>(Shape(known));
  } catch (const InvalidArgumentError& error) {
    const std::string why = error.what();
    fail(cat(why.substr(0, why.find_last_not_of('.') + 1), "; "));
  }
  if (!step.shapes.emplace(name, PartialShape(std::move(dims))).second)
    throw UsageError(cat("--feed: ", name, " is fed twice. Give each tensor once."));
}

// Each op and each class of kernels that the file names must exist: a typo would mean
// nothing, or that nothing can run.
void check_kernels(const DeviceSet& set) {
  const OpRegistry& ops = Runtime::current().ops();
  std::set<std::string> classes;
  for (const auto* k = KernelRegistration::newest(); k != nullptr; k = k->next())
    classes.insert(k->decl().kernel_class);
  for (const DeviceModel& device : set.devices) {
    const bool is_known = std::any_of(classes.begin(), classes.end(), [&](const std::string& name) {
      return name != kEveryKernelClass && serves(name, device.kernel_class);
    });
    if (!is_known) {
      std::string known;
      for (const std::string& name : classes)
        if (name != kEveryKernelClass) known += cat(known.empty() ? "'" : ", '", name, "'");
      throw InvalidArgumentError(cat(device.name(), " has kernels '", device.kernel_class,
                                     "', of which there are none. There are kernels ", known, "."));
    }
    for (const std::string& op : device.without) {
      try {
        static_cast<void>(ops.get(op));
      } catch (const NotFoundError& error) {
        throw InvalidArgumentError(
            cat("'without' of ", device.name(), " names '", op, "': ", error.what()));
      }
    }
  }
}

}  // namespace

WholeFunction StepArguments::step() const {
  if (graph.empty() && saved_model.folder.empty())
    throw UsageError("GRAPH or --saved-model DIR is required");
  WholeGraph wanted;
  wanted.fetches = fetches;
  wanted.targets = targets;
  wanted.inits = inits;
  for (const std::string& feed : feeds) add_feed(feed, wanted);
  if (!saved_model.folder.empty()) {
    if (!targets.empty() || !inits.empty())
      throw UsageError("--target and --init are nodes of a graph: a signature has none");
    return whole_function(ModelSignature(saved_model, fetches), wanted);
  }
  io::ImportOptions import;
  import.allow_unsupported = true;
  return whole_function(io::read_graph_def(graph, import), wanted);
}

DeviceSet StepArguments::read_devices() const {
  Runtime::current();  // what is wrong with the environment is not the file's fault
  return for_option("--devices", [&] {
    try {
      DeviceSet set = DeviceSet::parse_json(fs::read_file(devices));
      check_kernels(set);
      return set;
    } catch (const InvalidArgumentError& error) {
      throw InvalidArgumentError(cat(devices, ": ", error.what()));
    } catch (const NotFoundError& error) {
      throw NotFoundError(
          cat(error.what(), ". It takes a file that describes devices: see docs/placement.md."));
    }
  });
}

std::shared_ptr<const CostProfile> StepArguments::read_costs() const {
  if (costs.empty()) return nullptr;
  return for_option("--costs",
                    [&] { return std::make_shared<const CostProfile>(CostProfile::load(costs)); });
}

PlacementOptions StepArguments::placement(PlacementPolicy otherwise) const {
  PlacementOptions placement;
  placement.policy = policy.empty()     ? otherwise
                     : policy == "cost" ? PlacementPolicy::kCost
                                        : PlacementPolicy::kGreedy;
  placement.soft = !hard_placement;
  return placement;
}

}  // namespace tandem::cli
