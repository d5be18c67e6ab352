#include "tandem/placement/internal/colocation.h"

#include <string_view>
#include <unordered_map>

#include "tandem/core/error.h"

namespace tandem::placement {
namespace {

constexpr std::string_view kClassAttr = "_class";
constexpr std::string_view kClassPrefix = "loc:@";

bool makes_resource(const Node& node) {
  if (!node.inputs().empty() || node.num_outputs() != 1) return false;
  return is_ref(node.output_dtype(0)) || node.output_dtype(0) == DType::kResource;
}

// By input: whether it is declared as a reference.
class ReferenceInputs {
 public:
  explicit ReferenceInputs(const Node& node) : node_(node), args_(node.op().inputs) {}
  bool operator()(std::size_t i) {
    while (i >= end_ && next_ < args_.size()) {
      const ArgDef& arg = args_[next_++];
      end_ += !arg.number_attr.empty()
                  ? static_cast<std::size_t>(node_.attr<std::int64_t>(arg.number_attr))
              : !arg.type_list_attr.empty()
                  ? node_.attr<std::vector<DType>>(arg.type_list_attr).size()
                  : 1;
    }
    return i < end_ && args_[next_ - 1].is_ref;
  }

 private:
  const Node& node_;
  const std::vector<ArgDef>& args_;
  std::size_t next_ = 0;  // the argument after the one that ends at end_
  std::size_t end_ = 0;
};

const std::vector<std::string>* classes_of(const Node& node) {
  const AttrValue* value = node.attrs().find(kClassAttr);
  return value ? value->get_if<std::vector<std::string>>() : nullptr;
}

std::string quoted(const Node& node) { return cat("'", node.name(), "' (", node.op().name, ")"); }

}  // namespace

Colocation::Colocation(const Graph& graph, const DeviceSet& devices,
                       const PlacementOptions& options, SpecTable& specs, KernelSupport& support)
    : graph_(graph), devices_(devices), options_(options), specs_(specs), support_(support) {
  const auto ids = static_cast<std::size_t>(graph.id_limit());
  members_.resize(ids);
  requests_.resize(ids);
  given_.resize(ids);
  nodes_.resize(ids);
  for (const auto& node : graph.nodes()) add(*node);
  give(options.fixed);
  join_resource_edges();
  join_classes();
}

void Colocation::add(const Node& node) {
  const int id = node.id();
  Member& m = member(id);
  nodes_[static_cast<std::size_t>(id)] = &node;
  m.parent = id;
  m.bonds.kinds = support_.of(node).kinds;
  if (m.bonds.kinds == 0) {
    std::string refused;
    for (const std::string& one : support_.of(node).refused)
      refused += cat(refused.empty() ? "" : "; ", one);
    throw UnimplementedError(cat("No OpKernel was registered to support Op '", node.op().name,
                                 "' used by ", node.describe(), " on any of the devices: ", refused,
                                 "."));
  }
  if (m.bonds.kinds != support_.all()) m.bonds.narrowed_by = id;
  if (node.requested_device().empty()) return;
  int asked = 0;
  try {
    asked = specs_.parse(node.requested_device());
  } catch (const InvalidArgumentError& error) {
    throw InvalidArgumentError(cat("Malformed device specification '", node.requested_device(),
                                   "' in node: ", node.describe(), ". ", error.what()));
  }
  if (asked == 0) return;
  requests_[static_cast<std::size_t>(id)] = asked;
  m.bonds.requested = asked;
  m.bonds.asked_by = id;
  if (makes_resource(node)) m.bonds.resource = asked;
}

void Colocation::give(const std::vector<std::pair<const Node*, int>>& fixed) {
  for (const auto& [node, device] : fixed) {
    if (device < 0 || device >= devices_.size()) {
      throw InvalidArgumentError(cat(node->describe(), " is given to be on device ", device,
                                     ", but there are ", devices_.size(), "."));
    }
    const int spec = specs_.intern(devices_.devices[static_cast<std::size_t>(device)].spec);
    Bonds& bonds = member(node->id()).bonds;
    bonds.requested = bonds.given = spec;
    bonds.resource = 0;
    bonds.asked_by = node->id();
    requests_[static_cast<std::size_t>(node->id())] = spec;
    given_[static_cast<std::size_t>(node->id())] = true;
  }
}

int Colocation::root(int node) const {
  int top = node;
  while (members_[static_cast<std::size_t>(top)].parent != top)
    top = members_[static_cast<std::size_t>(top)].parent;
  while (node != top) {
    int& parent = members_[static_cast<std::size_t>(node)].parent;
    node = parent;
    parent = top;
  }
  return top;
}

void Colocation::join_resource_edges() {
  for (const auto& node : graph_.nodes()) {
    if (calls_functions(node->kind())) continue;
    ReferenceInputs wants_reference(*node);
    const auto& inputs = node->inputs();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Node* from = inputs[i].node;
      if (!from || calls_functions(from->kind())) continue;
      const DType dtype = from->output_dtype(inputs[i].index);
      if (dtype == DType::kResource || (is_ref(dtype) && wants_reference(i)))
        join_edge(*from, *node);
    }
  }
}

void Colocation::join_edge(const Node& from, const Node& to) {
  const int source = root(from.id()), target = root(to.id());
  if (source == target) return;
  const Bonds& have = bonds(source);
  Bonds& want = member(target).bonds;
  const auto require = [&](int a, int b, const char* what) {
    if (specs_.compatible(a, b)) return;
    const std::string who = sides(source, target);
    throw InvalidArgumentError(
        cat("Cannot place the graph because a reference or resource edge connects colocation "
            "groups with incompatible ",
            what, " devices: ", specs_[a].to_string(), " vs ", specs_[b].to_string(),
            ". The edge src node is ", from.name(), " , and the dst node is ", to.name(), ". ", who,
            who.empty() ? "" : " ",
            "What one op changes together must be on one device: make both in one "
            "td::DeviceScope, or the one under td::colocate_with(the other)."));
  };
  require(have.given, want.given, "assigned");
  require(have.resource, want.resource, "resource");
  if (!specs_.compatible(have.requested, want.requested)) {
    want.requested = specs_.overlay(specs_.overlay(have.requested, want.given), want.resource);
    want.asked_by = have.asked_by;
  }
  const std::string problem = join(from, to);
  if (problem.empty()) return;
  throw InvalidArgumentError(
      cat("Nodes were connected by a reference connection (requiring them to be on the same "
          "device), but the two nodes were assigned two different devices: ",
          problem, "\n\t [[{{node ", to.name(), "}}]]"));
}

void Colocation::join_classes() {
  // The first node of each group that is named anywhere.
  std::unordered_map<std::string_view, int> firsts;
  for (const auto& node : graph_.nodes()) {
    const auto* classes = classes_of(*node);
    if (!classes) continue;
    for (const std::string_view name : *classes) {
      if (name.starts_with(kClassPrefix)) firsts.emplace(name.substr(kClassPrefix.size()), -1);
    }
  }
  if (firsts.empty()) return;
  for (const auto& node : graph_.nodes()) {
    if (const auto* classes = classes_of(*node)) {
      for (const std::string_view name : *classes) {
        if (name.starts_with(kClassPrefix))
          join_class(*node, firsts.at(name.substr(kClassPrefix.size())));
      }
    }
    const auto own = firsts.find(node->name());
    if (own != firsts.end()) join_class(*node, own->second);
  }
}

void Colocation::join_class(const Node& node, int& first) {
  if (first < 0) {
    first = node.id();
    return;
  }
  const std::string problem = join(node, *nodes_[static_cast<std::size_t>(first)]);
  if (!problem.empty() && !options_.soft)
    throw InvalidArgumentError(cat(problem, "\n\t [[{{node ", node.name(), "}}]]"));
}

std::string Colocation::join(const Node& a, const Node& b) {
  int top = root(a.id()), below = root(b.id());
  if (top == below) return {};
  const int first = top, second = below;
  if (member(top).rank < member(below).rank) std::swap(top, below);
  Bonds& kept = member(top).bonds;
  const Bonds& other = bonds(below);
  const auto nodes = [&] {
    return cat("Cannot colocate nodes {{colocation_node ", a.name(), "}} and {{colocation_node ",
               b.name(), "}}");
  };
  std::string problem;
  const int given = specs_.merge(kept.given, other.given, false, problem);
  const int resource = specs_.merge(kept.resource, other.resource, false, problem);
  int requested = specs_.merge(kept.requested, other.requested, options_.soft, problem);
  if (given < 0 || resource < 0 || requested < 0)
    return cat(nodes(), ": ", problem, ". ", sides(first, second));
  if ((kept.kinds & other.kinds) == 0) {
    return cat(nodes(),
               " because no device type supports both of those nodes and the other nodes colocated "
               "with them. ",
               sides(first, second));
  }
  requested = specs_.overlay(specs_.overlay(requested, given), resource);
  kept.given = given;
  kept.resource = resource;
  kept.requested = requested;
  if (kept.asked_by < 0) kept.asked_by = other.asked_by;
  if ((kept.kinds & ~other.kinds) != 0) kept.narrowed_by = other.narrowed_by;
  kept.kinds &= other.kinds;
  if (member(top).rank == member(below).rank) ++member(top).rank;
  member(below).parent = top;
  return {};
}

// Who of both sets wants what.
std::string Colocation::sides(int root_a, int root_b) const {
  std::string text;
  for (const int r : {root_a, root_b}) {
    const Bonds& b = bonds(r);
    if (b.asked_by >= 0) {
      const Node& asked = *nodes_[static_cast<std::size_t>(b.asked_by)];
      text +=
          cat(text.empty() ? "" : "; ", quoted(asked), given(asked) ? " is on '" : " asked for '",
              specs_[request(asked)].to_string(), "'");
    }
    if (b.narrowed_by >= 0) {
      const Node& narrow = *nodes_[static_cast<std::size_t>(b.narrowed_by)];
      const auto& refused = support_.of(narrow).refused;
      text += cat(text.empty() ? "" : "; ", quoted(narrow), " can't run on ",
                  refused.empty() ? "others" : refused.front());
    }
  }
  return text.empty() ? text : text + ".";
}

}  // namespace tandem::placement
