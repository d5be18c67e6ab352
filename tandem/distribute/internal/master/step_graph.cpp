#include "tandem/distribute/internal/master/step_graph.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/task/peers.h"
#include "tandem/graph/expand_functions.h"
#include "tandem/graph/op_registry.h"
#include "tandem/placement/placement.h"
#include "tandem/runtime/execute/prepare.h"
#include "tandem/runtime/runtime.h"

namespace tandem::distribute {

std::string tensor_name(const std::string& text) {
  return text.find(':') == std::string::npos ? text + ":0" : text;
}

std::string StepSignature::key() const {
  std::string key = cat(partial ? "p" : "", trace ? "t" : "");
  const auto add = [&key](const std::string& name) { key += cat(name.size(), ':', name); };
  for (const auto* list : {&feeds, &fetches, &targets}) {
    key += cat(list->size(), ';');
    for (const std::string& name : *list) add(name);
  }
  for (const auto& [from, to] : connections) {
    add(from);
    add(to);
  }
  return key;
}

RendezvousKey client_key(const ClusterDevices& devices, const std::string& tensor) {
  const PartitionDevice& own = devices.devices().front();
  return {own.name, own.incarnation, own.name, tensor, {}};
}

namespace {

// Where a tensor's name leads; `node` is null where there is none of that name.
struct Found {
  Node* node = nullptr;
  int index = 0;
};

Found find_tensor(const Graph& graph, const std::string& name) {
  const std::size_t colon = name.rfind(':');
  Found found;
  const char* end = name.data() + name.size();
  const auto [next, error] = std::from_chars(name.data() + colon + 1, end, found.index);
  if (colon == std::string::npos || error != std::errc() || next != end || found.index < 0)
    return {};
  found.node = graph.find(name.substr(0, colon));
  return found;
}

Output find_fetch(const Graph& graph, const std::string& name) {
  const Found found = find_tensor(graph, name);
  if (!found.node) throw NotFoundError(cat("FetchOutputs node ", name, ": not found"));
  if (found.index >= found.node->num_outputs()) {
    throw InvalidArgumentError(cat("FetchOutputs ", name, ": output index too large, must be < ",
                                   found.node->num_outputs()));
  }
  return {found.node, found.index};
}

Output find_feed(const Graph& graph, const std::string& name) {
  const Found found = find_tensor(graph, name);
  if (!found.node) throw NotFoundError(cat("FeedInputs: unable to find feed output ", name));
  if (found.index >= found.node->num_outputs()) {
    throw InvalidArgumentError(
        cat("FeedInputs: ", name, " should have output index < ", found.node->num_outputs()));
  }
  return {found.node, found.index};
}

bool is_placeholder(const Node& node) {
  return node.op().name == "Placeholder" || node.op().name == "PlaceholderV2";
}

void check_fed(const Graph& needed) {
  for (const auto& node : needed.nodes()) {
    if (!is_placeholder(*node)) continue;
    const PartialShape& shape = node->output_shape(0);
    const std::string at = shape.has_rank() && shape.rank() > 0 ? cat(" and shape ", shape) : "";
    throw InvalidArgumentError(cat("From ", task_of_device(node->requested_device()),
                                   ":\nYou must feed a value for placeholder tensor '",
                                   node->name(), "' with dtype ", node->output_dtype(0), at,
                                   "\n\t [[{{node ", node->name(), "}}]]"));
  }
}

// A fed tensor's users use `replacement` instead; what waited for a placeholder waits no more.
void replace(Graph& graph, Output fed, Output replacement, std::vector<Output>& results) {
  graph.replace_uses(fed, replacement);
  for (Output& result : results) {
    if (result == fed) result = replacement;
  }
  if (!is_placeholder(*fed.node)) return;
  for (const auto& node : graph.nodes()) {
    std::vector<Node*> before = node->control_inputs();
    if (std::erase(before, fed.node) > 0) graph.set_control_inputs(node.get(), std::move(before));
  }
}

class StepGraphMaker {
 public:
  StepGraphMaker(const SessionGraph& session, const StepSignature& signature, Runtime& runtime,
                 const ClusterDevices& devices, std::int64_t number)
      : graph_(session.graph().clone()),
        signature_(signature),
        runtime_(runtime),
        devices_(devices),
        own_device_(devices.devices().front()),
        number_(number) {}

  StepGraph run() {
    check_names();
    find();
    connect();
    feed();
    Function whole("session", std::move(graph_), args_, results_, effects_);
    MutableFunction needed(whole);
    passes::prune(needed);
    check_fed(needed.graph);
    needed.graph.infer_shapes_to_run();  // feeds may have any shape
    if (signature_.partial) step_.needed_feeds = feeds_of_fetches(needed);
    if (any_call_spans_tasks(needed.graph)) passes::expand_functions(needed, runtime_.ops());
    if (signature_.partial) send_fetches(needed);
    prepare(needed, runtime_.ops());
    step_.parts = partition(assign(std::move(needed)), runtime_.ops());
    return std::move(step_);
  }

 private:
  void check_names() const {
    if (signature_.fetches.empty() && signature_.targets.empty())
      throw InvalidArgumentError("Must specify at least one target to fetch or execute.");
    std::set<std::string> fed;
    for (const std::string& name : signature_.feeds) {
      if (!fed.insert(name).second)
        throw InvalidArgumentError(cat("Endpoint \"", name, "\" fed more than once."));
    }
    for (const std::string& name : signature_.fetches) {
      if (fed.contains(name)) throw InvalidArgumentError(cat(name, " is both fed and fetched."));
    }
  }

  void find() {
    for (const std::string& name : signature_.feeds) fed_.push_back(find_feed(graph_, name));
    for (const std::string& name : signature_.fetches) results_.push_back(find_fetch(graph_, name));
    std::string missing;
    for (const std::string& name : signature_.targets) {
      // A tensor's name stands for the node that makes it.
      Node* node = graph_.find(name.substr(name.starts_with("^") ? 1 : 0));
      if (!node) node = graph_.find(name.substr(0, name.rfind(':')));
      if (!node) {
        missing += name + " ";
      } else if (std::find(effects_.begin(), effects_.end(), node) == effects_.end()) {
        effects_.push_back(node);
      }
    }
    if (!missing.empty())
      throw NotFoundError(cat("PruneForTargets: Some target nodes not found: ", missing));
  }

  void connect() {
    for (const auto& [from, to] : signature_.connections)
      replace(graph_, find_feed(graph_, to), find_fetch(graph_, from), results_);
  }

  void feed() {
    for (std::size_t i = 0; i < fed_.size(); ++i) {
      const Output fed = fed_[i];
      const DType dtype = base_dtype(fed.node->output_dtype(fed.index));
      step_.feed_dtypes.push_back(dtype);
      Graph::NodeSpec spec;
      if (signature_.partial) {
        spec.op = &runtime_.ops().get("_Recv");
        spec.attrs = transfer_attrs(signature_.feeds[i]);
        spec.attrs.set("tensor_type", dtype);
      } else {
        spec.op = &runtime_.ops().of_kind(NodeKind::kArg);
        spec.attrs = AttrMap{{"T", dtype}, {"index", static_cast<std::int64_t>(i)}};
      }
      spec.name = cat("_recv_", fed.node->name(), "_", fed.index);
      spec.device = own_device_.name;
      Node* source = graph_.add(std::move(spec));
      graph_.set_output_shape(source, 0, PartialShape::unknown());
      if (signature_.partial) {
        feed_of_[source->name()] = signature_.feeds[i];
      } else {
        args_.push_back(source);
      }
      replace(graph_, fed, {source, 0}, results_);
    }
  }

  // Whether a function's nodes, or resources that it is given, lie in several tasks: its body then
  // has to become a part of the graph that is cut.
  static bool any_call_spans_tasks(const Graph& graph) {
    return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const auto& node) {
      if (!calls_functions(node->kind())) return false;
      const std::string& device = node->requested_device();
      return passes::spans_tasks(*node, device) ||
             std::any_of(node->inputs().begin(), node->inputs().end(), [&](const Output& in) {
               return in.node && in.node->output_dtype(in.index) == DType::kResource &&
                      task_of_device(in.node->requested_device()) != task_of_device(device);
             });
    });
  }

  // The value of a fetch is sent to the client, which takes it when it likes.
  void send_fetches(MutableFunction& f) const {
    for (std::size_t i = 0; i < f.results.size(); ++i) {
      Graph::NodeSpec spec;
      spec.op = &runtime_.ops().get("_Send");
      spec.name = cat("_send_", f.results[i].node->name(), "_", f.results[i].index);
      spec.inputs = {f.results[i]};
      spec.attrs = transfer_attrs(signature_.fetches[i]);
      spec.device = own_device_.name;
      f.control_results.push_back(f.graph.add(std::move(spec)));
    }
    f.results.clear();
  }

  AttrMap transfer_attrs(const std::string& tensor) const {
    return AttrMap{{"tensor_name", tensor},
                   {"send_device", own_device_.name},
                   {"send_device_incarnation", static_cast<std::int64_t>(own_device_.incarnation)},
                   {"recv_device", own_device_.name},
                   {"client_terminated", true}};
  }

  std::vector<std::set<std::string>> feeds_of_fetches(const MutableFunction& f) const {
    std::vector<std::set<std::string>> needed;
    for (const Output& result : f.results) {
      std::set<const Node*> seen{result.node};
      std::vector<const Node*> waiting{result.node};
      std::set<std::string>& feeds = needed.emplace_back();
      const auto visit = [&](const Node* node) {
        if (node && seen.insert(node).second) waiting.push_back(node);
      };
      while (!waiting.empty()) {
        const Node* node = waiting.back();
        waiting.pop_back();
        if (const auto feed = feed_of_.find(node->name()); feed != feed_of_.end())
          feeds.insert(feed->second);
        for (const Output& in : node->inputs()) visit(in.node);
        for (const Node* before : node->control_inputs()) visit(before);
      }
    }
    return needed;
  }

  // Devices for all nodes; what is fetched arrives in the master's own task.
  AssignedGraph assign(MutableFunction f) const {
    PlacementOptions options;
    options.policy = runtime_.placement_policy();
    options.default_device = devices_.own_task();
    for (const Node* arg : f.args) options.fixed.emplace_back(arg, 0);
    const Placement placement =
        place(f.graph, CostModel(devices_.set()), runtime_.kernels(), options);
    std::vector<int> device_of(static_cast<std::size_t>(f.graph.id_limit()), -1);
    for (const auto& node : f.graph.nodes())
      device_of[static_cast<std::size_t>(node->id())] = placement.device(*node);
    const int num_own = static_cast<int>(runtime_.devices().size());
    for (Output& result : f.results) {
      if (placement.device(*result.node) < num_own) continue;
      Graph::NodeSpec spec;
      spec.op = &runtime_.ops().get("Identity");
      spec.name = cat("_fetch_", result.node->name(), "_", result.index);
      spec.inputs = {result};
      spec.device = own_device_.name;
      result = {f.graph.add(std::move(spec)), 0};
      device_of.resize(static_cast<std::size_t>(f.graph.id_limit()), -1);
      device_of[static_cast<std::size_t>(result.node->id())] = 0;
    }
    return {std::move(f), devices_.devices(), std::move(device_of), cat(number_, "_")};
  }

  Graph graph_;
  const StepSignature& signature_;
  Runtime& runtime_;
  const ClusterDevices& devices_;
  const PartitionDevice& own_device_;
  const std::int64_t number_;
  std::vector<Output> fed_;
  std::vector<Node*> args_;
  std::vector<Output> results_;
  std::vector<Node*> effects_;
  std::map<std::string, std::string> feed_of_;  // by the name of the node that receives it
  StepGraph step_;
};

}  // namespace

StepGraph make_step_graph(const SessionGraph& session, const StepSignature& signature,
                          Runtime& runtime, const ClusterDevices& devices, std::int64_t number) {
  return StepGraphMaker(session, signature, runtime, devices, number).run();
}

}  // namespace tandem::distribute
