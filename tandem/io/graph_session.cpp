#include "tandem/io/graph_session.h"

#include <algorithm>
#include <charconv>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/node_states.h"
#include "tandem/graph/op_registry.h"
#include "tandem/graph/passes.h"
#include "tandem/io/graph_export.h"
#include "tandem/io/internal/loop_checks.h"
#include "tandem/io/internal/parse.h"
#include "tandem/io/internal/pin_resources.h"
#include "tandem/io/internal/stand_in.h"
#include "tandem/io/internal/wire.h"
#include "tandem/runtime/function_calls.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/session.h"
#include "tandem/runtime/tensor.h"
#include "tandem/runtime/thread_context.h"

namespace tandem::io {
namespace {

// What a name of no node may have meant: the nearest one, else some of which it is a part.
std::string near_names(const Graph& graph, const std::string& name) {
  constexpr int kMax = 3;
  std::vector<std::string> names;
  for (const auto& node : graph.nodes()) names.push_back(node->name());
  const std::string nearest = nearest_name(name, names);
  if (!nearest.empty()) return cat(" Did you mean '", nearest, "'?");
  std::string list;
  int found = 0;
  for (const std::string& other : names) {
    if (name.empty() || other.find(name) == std::string::npos || ++found > kMax) continue;
    list += cat(list.empty() ? " It is a part of '" : ", '", other, "'");
  }
  if (found > kMax) list += cat(" and ", found - kMax, " more");
  return list.empty() ? "" : list + ".";
}

Node* find_node(const Graph& graph, const std::string& name) {
  if (Node* node = graph.find(name)) return node;
  throw NotFoundError(cat("The graph has no node '", name, "'.", near_names(graph, name),
                          " `td graph FILE` lists inputs and outputs, with --dot every node."));
}

// "node" or "node:1".
Output find_output(const Graph& graph, const std::string& text, const ImportedGraph& imported) {
  const std::size_t colon = text.rfind(':');
  int index = 0;
  if (colon != std::string::npos) {
    const char* end = text.data() + text.size();
    const auto [next, error] = std::from_chars(text.data() + colon + 1, end, index);
    if (error != std::errc() || next != end || index < 0) {
      throw InvalidArgumentError(
          cat("'", text, "' names no tensor: write NODE or NODE:OUTPUT, as in 'dense:1'."));
    }
  }
  Node* node = find_node(graph, text.substr(0, colon));
  if (index >= node->num_outputs() && !why_unsupported(*node)) {
    throw NotFoundError(cat("There is no tensor '", text, "': node '", node->name(), "' (",
                            node->op().name, ") has ", node->num_outputs(),
                            node->num_outputs() == 1 ? " output." : " outputs.",
                            node->num_outputs() == 0 ? " It can be a target." : ""));
  }
  if (index >= node->num_outputs()) {
    throw UnimplementedError(cat(
        "Tensor '", text, "' is of a node that this build cannot run. ",
        "All nodes of the graph that it cannot run:", describe_unsupported(imported.unsupported)));
  }
  return {node, index};
}

Node* find_target(const Graph& graph, std::string name) {
  if (name.starts_with("^")) name.erase(0, 1);
  const std::size_t colon = name.rfind(':');
  if (colon != std::string::npos && !graph.find(name) && graph.find(name.substr(0, colon))) {
    throw InvalidArgumentError(cat("'", name, "' is a tensor, but a target is a node: write '",
                                   name.substr(0, colon), "', or fetch the tensor."));
  }
  return find_node(graph, name);
}

// True if the node cannot run, or calls a function with such a node.
bool cannot_run(const Node& node, std::map<const Function*, bool>& known) {
  if (why_unsupported(node)) return true;
  const auto function_cannot = [&](const FunctionRef& f) {
    if (const auto found = known.find(f.get()); found != known.end()) return found->second;
    const auto& nodes = f->body().nodes();
    const bool any = std::any_of(nodes.begin(), nodes.end(),
                                 [&](const auto& n) { return cannot_run(*n, known); });
    known.emplace(f.get(), any);
    return any;
  };
  for (const auto& [name, value] : node.attrs()) {
    if (const auto* f = value.get_if<FunctionRef>(); f && *f && function_cannot(*f)) return true;
    const auto* list = value.get_if<std::vector<FunctionRef>>();
    if (list && std::any_of(list->begin(), list->end(), function_cannot)) return true;
  }
  return false;
}

void check_runs(const Graph& needed, const ImportedGraph& imported) {
  std::map<const Function*, bool> known;
  std::string first;
  int count = 0;
  for (const auto& node : needed.nodes()) {
    if (cannot_run(*node, known) && ++count == 1) first = node->name();
  }
  if (count == 0) return;
  throw UnimplementedError(cat(
      "The step needs ", count, count == 1 ? " node" : " nodes", " that this build cannot run, '",
      first, count == 1 ? "'" : "' among them",
      ". All nodes of the graph that it cannot run:", describe_unsupported(imported.unsupported)));
}

bool is_placeholder(const Node& node) {
  return node.op().traits.placeholder && node.inputs().empty();
}

void check_fed(const Graph& needed) {
  std::string missing;
  for (const auto& node : needed.nodes()) {
    if (!is_placeholder(*node)) continue;
    missing += cat(missing.empty() ? "" : ", ", "'", node->name(), "' (", node->output_dtype(0),
                   node->output_shape(0), ")");
  }
  if (missing.empty()) return;
  throw InvalidArgumentError(cat("The step needs values for placeholders that are not fed: ",
                                 missing, ". Feed them (td run: --feed NAME=FILE.npy)."));
}

}  // namespace

struct GraphSession::State {
  explicit State(const Options& wanted)
      : options(wanted), session({.isolate_state = wanted.isolate_state}) {}

  const Options options;
  const Session session;
  std::shared_ptr<Runtime> runtime = session.runtime().share();
  std::mutex mutex;
  const std::shared_ptr<NodeStates> states = std::make_shared<NodeStates>();
  // Guarded by mutex.
  std::shared_ptr<const ImportedGraph> imported;
  std::shared_ptr<const Graph> graph;  // with the devices of resources
  struct Prepared {
    std::string key;
    Step step;
  };
  std::list<Prepared> prepared;  // most recently used first
  std::unordered_map<std::string, std::list<Prepared>::iterator> by_key;

  void set_graph(ImportedGraph given) {
    auto pinned = with_pinned_resources(given.graph, *runtime);
    auto kept = std::make_shared<const ImportedGraph>(std::move(given));
    std::lock_guard lock(mutex);
    graph = std::move(pinned);
    imported = std::move(kept);
  }
  const Step* find(const std::string& key) {
    const auto found = by_key.find(key);
    if (found == by_key.end()) return nullptr;
    prepared.splice(prepared.begin(), prepared, found->second);
    return &prepared.front().step;
  }
  void keep(const std::string& key, const Step& step) {
    if (find(key)) return;
    prepared.push_front({key, step});
    by_key.emplace(key, prepared.begin());
    while (prepared.size() > std::max<std::size_t>(options.max_prepared, 1)) {
      by_key.erase(prepared.back().key);
      prepared.pop_back();
    }
  }
};

GraphSession::GraphSession(ImportedGraph graph) : GraphSession(std::move(graph), Options{}) {}
GraphSession::GraphSession(ImportedGraph graph, const Options& options) {
  if (!graph.graph)
    throw InvalidArgumentError(
        "There is no graph to run. import_graph_def and read_graph_def give one.");
  state_ = std::make_unique<State>(options);
  state_->set_graph(std::move(graph));
}
GraphSession::~GraphSession() = default;
GraphSession::GraphSession(GraphSession&&) noexcept = default;
GraphSession& GraphSession::operator=(GraphSession&&) noexcept = default;

GraphSession::State& GraphSession::state() const {
  if (!state_) throw FailedPreconditionError("This GraphSession was moved to another.");
  return *state_;
}

const ImportedGraph& GraphSession::imported() const {
  State& s = state();
  std::lock_guard lock(s.mutex);
  return *s.imported;
}

const Session& GraphSession::session() const { return state().session; }

std::size_t GraphSession::num_prepared() const {
  State& s = state();
  std::lock_guard lock(s.mutex);
  return s.prepared.size();
}

// Protocol buffers are made so that the bytes of two messages, one after the other, are the bytes
// of both merged: lists of nodes and functions are joined.
void GraphSession::extend(std::string_view graph_def, GraphFormat format) {
  State& s = state();
  std::shared_ptr<const ImportedGraph> before;
  {
    std::lock_guard lock(s.mutex);
    before = s.imported;
  }
  proto::GraphDef more = parse_graph_def(graph_def, format, "the extension of the graph");
  std::string twice;
  for (const proto::NodeDef& node : more.node) {
    if (before->graph->find(node.name))
      twice += cat(twice.empty() ? "" : ", ", "'", node.name, "'");
  }
  if (!twice.empty()) {
    throw InvalidArgumentError(cat("The graph is extended by nodes that it has already: ", twice,
                                   ". Give only the new ones, or give these other names."));
  }
  // Both read in the terms of the newer.
  more.versions.make().producer = std::max(before->producer, more.versions->producer);
  const std::string bytes = export_graph_def(*before).bytes + proto::WireWriter::write(more);
  ImportOptions options;
  options.allow_unsupported = !before->unsupported.empty();
  options.name = "the extended graph";
  const RuntimeScope scope(*s.runtime);
  ImportedGraph extended = import_graph_def(bytes, options);
  s.set_graph(std::move(extended));
}

namespace {

// A fed tensor becomes an argument, which its users use instead; what waited for a placeholder
// waits no more.
Node* cut(Graph& graph, const OpRegistry& ops, Output fed, std::int64_t index,
          std::vector<Output>& results) {
  const std::string name = cat(fed.node->name(), "/fed_", fed.index);
  Graph::NodeSpec spec;
  spec.op = &ops.of_kind(NodeKind::kArg);
  spec.name = name;
  spec.attrs = AttrMap{{"T", base_dtype(fed.node->output_dtype(fed.index))}, {"index", index}};
  Node* arg = graph.add(std::move(spec));
  graph.set_output_shape(arg, 0, fed.node->output_shape(fed.index));
  graph.replace_uses(fed, {arg, 0});
  for (Output& r : results) {
    if (r == fed) r = {arg, 0};
  }
  if (is_placeholder(*fed.node)) {
    for (const auto& node : graph.nodes()) {
      std::vector<Node*> before = node->control_inputs();
      if (std::erase(before, fed.node) > 0) graph.set_control_inputs(node.get(), std::move(before));
    }
  }
  return arg;
}

}  // namespace

GraphSession::Step GraphSession::prepare(const std::vector<std::string>& feeds,
                                         const std::vector<std::string>& fetches,
                                         const std::vector<std::string>& targets) const {
  State& state = this->state();
  std::string key;
  for (const auto* list : {&feeds, &fetches, &targets}) {
    key += cat(list->size(), ';');
    for (const std::string& name : *list) key.append(cat(name.size(), ':')).append(name);
  }
  std::shared_ptr<const ImportedGraph> imported;
  std::shared_ptr<const Graph> whole_graph;
  {
    std::lock_guard lock(state.mutex);
    if (const Step* known = state.find(key)) return *known;
    imported = state.imported;
    whole_graph = state.graph;
  }
  Graph graph = whole_graph->clone();
  std::vector<Output> results, fed;
  std::vector<Node*> effects, args;
  for (const std::string& name : fetches) results.push_back(find_output(graph, name, *imported));
  for (const std::string& name : targets) {
    Node* target = find_target(graph, name);
    if (std::find(effects.begin(), effects.end(), target) == effects.end())
      effects.push_back(target);
  }
  for (const std::string& name : feeds) {
    const Output output = find_output(graph, name, *imported);
    if (std::find(fed.begin(), fed.end(), output) != fed.end())
      throw InvalidArgumentError(cat("Tensor '", name, "' is fed twice."));
    fed.push_back(output);
  }
  const std::vector<Output> fed_first = fed;  // `graph` has the ids of the imported one
  for (std::size_t i = 0; i < fed.size(); ++i) {
    args.push_back(cut(graph, state.runtime->ops(), fed[i], static_cast<std::int64_t>(i), results));
  }
  const Function whole("session", std::move(graph), std::move(args), std::move(results),
                       std::move(effects));
  MutableFunction needed(whole);
  passes::prune(needed);
  check_runs(needed.graph, *imported);
  check_fed(needed.graph);
  check_outside_of_loops(needed, *state.graph, fed_first, feeds, fetches);

  Step step;
  step.feed_names_ = feeds;
  step.runtime_ = state.runtime;
  step.states_ = state.states;
  step.num_nodes_ = static_cast<int>(needed.graph.num_nodes() - needed.args.size());
  step.function_ = std::make_shared<const Function>(
      "session", std::move(needed.graph), std::move(needed.args), std::move(needed.results),
      std::move(needed.control_results));
  // Two threads may make the same step: node state belongs to the one that is kept.
  std::lock_guard lock(state.mutex);
  if (const Step* known = state.find(key)) return *known;
  state.keep(key, step);
  return step;
}

namespace {

// The step that the thread runs in the block belongs to the session.
class SessionScope {
 public:
  explicit SessionScope(const std::shared_ptr<NodeStates>& states) {
    thread_context().session = states;
  }
  ~SessionScope() { thread_context().session = nullptr; }
  SessionScope(const SessionScope&) = delete;
  SessionScope& operator=(const SessionScope&) = delete;
};

}  // namespace

std::vector<Array> GraphSession::Step::run(const std::vector<Array>& feeds) const {
  return run(feeds, {});
}

std::vector<Array> GraphSession::Step::run(const std::vector<Array>& feeds,
                                           const RunOptions& options) const {
  if (!function_) {
    throw FailedPreconditionError(
        "This Step runs nothing: it was default-constructed, or moved from. "
        "GraphSession::prepare(feeds, fetches, targets) makes one.");
  }
  if (feeds.size() != feed_names_.size()) {
    throw InvalidArgumentError(
        cat("The step takes ", feed_names_.size(), " feeds but got ", feeds.size(), "."));
  }
  const RuntimeScope scope(*runtime_);
  std::optional<DeadlineScope> deadline;
  if (options.timeout) deadline.emplace(*options.timeout);
  std::vector<Tensor> args;
  for (std::size_t i = 0; i < feeds.size(); ++i) {
    const Node& arg = *function_->args()[i];
    if (!feeds[i].valid()) {
      throw InvalidArgumentError(cat("Tensor '", feed_names_[i], "' (", arg.output_dtype(0),
                                     arg.output_shape(0), ") is fed an empty Array: one that was ",
                                     "default-constructed, or moved from."));
    }
    if (feeds[i].dtype() != arg.output_dtype(0) ||
        !arg.output_shape(0).is_compatible(feeds[i].shape())) {
      throw InvalidArgumentError(cat(
          "Tensor '", feed_names_[i], "' is ", arg.output_dtype(0), arg.output_shape(0),
          " but is fed ", feeds[i].dtype(), feeds[i].shape(), ".",
          feeds[i].dtype() != arg.output_dtype(0) ? " Convert it: astype in NumPy, td::cast here."
                                                  : ""));
    }
    args.emplace_back(feeds[i]);
  }
  std::vector<Array> values;
  const SessionScope session(states_);
  for (const Tensor& value : call_function(function_, args)) values.push_back(value.array());
  return values;
}

std::vector<Array> GraphSession::run(const std::vector<Feed>& feeds,
                                     const std::vector<std::string>& fetches,
                                     const std::vector<std::string>& targets) const {
  std::vector<std::string> names;
  std::vector<Array> values;
  for (const Feed& feed : feeds) {
    names.push_back(feed.name);
    values.push_back(feed.value);
  }
  return prepare(names, fetches, targets).run(values);
}

}  // namespace tandem::io
