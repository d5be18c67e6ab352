// Changes are judged by simulating the step with them.

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/runtime/explain/explainer.h"

namespace tandem {
namespace {

constexpr double kWorthSaying = 0.01;  // of a step
constexpr std::size_t kMaxAdvice = 8;
constexpr double kEffort = 400'000;  // tasks simulated, roughly

std::size_t index(int i) { return static_cast<std::size_t>(i); }

struct Move {
  std::vector<int> ops;  // sorted
  std::vector<int> to;   // for each its device
  std::string what;      // "scope 'tower'"
  double estimate = 0;   // of what it gains, seconds
};

class Adviser {
 public:
  Adviser(const ExplainedGraph& g, Explanation& out) : g_(g), out_(out) {
    placement_.devices = g.placement.devices;
    placement_.nodes.resize(g.placement.nodes.size());
    for (std::size_t i = 0; i < placement_.nodes.size(); ++i)
      placement_.nodes[i].device = g.placement.nodes[i].device;
    users_.resize(out.ops.size());
    for (std::size_t op = 0; op < out.ops.size(); ++op) {
      for (const int in : out.ops[op].inputs) users_[index(in)].push_back(static_cast<int>(op));
    }
  }

  void operator()() {
    memory();
    if (out_.devices.size() < 2 || out_.step_seconds <= 0) return;
    policy();
    host_reads();
    network();
    moves();
    std::stable_sort(found_.begin(), found_.end(),
                     [](const auto& a, const auto& b) { return a.gain > b.gain; });
    if (found_.size() > kMaxAdvice) found_.resize(kMaxAdvice);
    for (Explanation::Advice& advice : found_) out_.advice.push_back(std::move(advice));
  }

 private:
  const std::string& device(int d) const { return out_.devices[index(d)].short_name; }

  void memory() {
    for (const Explanation::Device& d : out_.devices) {
      if (d.memory_limit <= 0 || d.memory_peak <= d.memory_limit) continue;
      Explanation::Advice advice;
      advice.text = cat(d.short_name, " would hold ", bytes_text(d.memory_peak),
                        " at a time, more than its limit of ", bytes_text(d.memory_limit),
                        ": make the batch smaller, or move a part to another device.");
      advice.step_seconds = out_.step_seconds;
      out_.advice.push_back(std::move(advice));
    }
  }

  std::string gains(double step) const {
    const double gain = out_.step_seconds - step;
    return cat("a step would take ", seconds_text(step), " instead of ",
               seconds_text(out_.step_seconds), ", ", seconds_text(gain), " (",
               static_cast<int>(100 * gain / out_.step_seconds + 0.5), " %) less");
  }

  bool worth_saying(double step) const {
    return out_.step_seconds - step >= kWorthSaying * out_.step_seconds;
  }

  void add(std::string text, std::vector<int> ops, int to, double step) {
    found_.push_back({std::move(text), std::move(ops), to, step, out_.step_seconds - step});
  }

  void policy() {
    if (g_.options.policy == PlacementPolicy::kCost) return;
    PlacementOptions options = g_.options;
    options.policy = PlacementPolicy::kCost;
    options.log = false;
    Placement other = place(g_.graph, g_.costs, g_.kernels, options);
    // Arguments stay where the caller has them.
    for (const Node* node : g_.order) {
      if (node->kind() == NodeKind::kArg)
        other.nodes[index(node->id())].device = g_.placement.device(*node);
    }
    const Simulation simulation = simulate(TaskGraph::of(g_.graph, other, g_.costs));
    if (!worth_saying(simulation.makespan)) return;
    std::vector<int> moved;
    for (std::size_t op = 0; op < out_.ops.size(); ++op) {
      if (other.device(*g_.order[op]) != out_.ops[op].device) moved.push_back(static_cast<int>(op));
    }
    std::string text =
        cat("Place by costs (td::config::set_placement_policy, or TANDEM_PLACEMENT=cost): with ",
            counted(moved.size(), "op", "ops"), " elsewhere ", gains(simulation.makespan), ".");
    std::vector<int> to;
    for (const int op : moved) to.push_back(other.device(*g_.order[index(op)]));
    text += not_measured(moved, to);
    add(std::move(text), std::move(moved), -1, simulation.makespan);
  }

  // A step in which the copies of each way are one copy, which pays for the way once.
  double step_with_joined(const std::vector<int>& copies) const {
    TaskGraph tasks = TaskGraph::of(g_.graph, g_.placement, g_.costs);
    const std::set<int> joined(copies.begin(), copies.end());
    std::set<std::pair<int, int>> paid;
    for (Task& task : tasks.tasks) {
      if (!joined.contains(task.copy)) continue;
      const PlannedCopy& copy = tasks.copies[index(task.copy)];
      if (paid.emplace(copy.from, copy.to).second) continue;
      const double way = g_.placement.devices.copy_seconds(copy.from, copy.to, 0);
      task.seconds = std::max(0.0, task.seconds - way);
    }
    return simulate(tasks).makespan;
  }

  static constexpr std::size_t kFewestJoined = 3;

  void host_reads() {
    if (out_.host_reads.size() < kFewestJoined) return;
    const double step = step_with_joined(out_.host_reads);
    if (!worth_saying(step)) return;
    add(cat("Read the ", out_.host_reads.size(),
            " small values that go to the host each step together (td::stack), or less often: ",
            gains(step), "."),
        {}, -1, step);
  }

  // Values that take longer for the way than for their bytes.
  void network() {
    for (const Explanation::Transfer& transfer : out_.network) {
      const double way = g_.placement.devices.copy_seconds(transfer.from, transfer.to, 0);
      std::vector<int> small;
      for (const int c : transfer.copies) {
        if (out_.copies[index(c)].seconds < 2 * way) small.push_back(c);
      }
      if (small.size() < kFewestJoined) continue;
      const double step = step_with_joined(small);
      if (!worth_saying(step)) continue;
      add(cat("Send the ", small.size(), " small values that go from ",
              out_.devices[index(transfer.from)].task, " to ",
              out_.devices[index(transfer.to)].task,
              " each step together (td::stack or td::concat), or compute what needs them where "
              "they "
              "are: ",
              gains(step), "."),
          {}, -1, step);
    }
  }

  bool movable(int op, int to) const {
    const Node& node = *g_.order[index(op)];
    const DeviceModel& model = g_.placement.devices.devices[index(to)];
    if (node.kind() == NodeKind::kConst) return true;
    if (node.kind() == NodeKind::kArg || node.kind() == NodeKind::kVariable) return false;
    const auto bound = [](DType type) { return is_ref(type) || type == DType::kResource; };
    for (const Output& in : node.inputs()) {
      if (bound(in.node->output_dtype(in.index))) return false;
    }
    for (int i = 0; i < node.num_outputs(); ++i) {
      if (bound(node.output_dtype(i))) return false;
    }
    if (!model.host_memory && node.op().traits.cpu_only) return false;
    if (std::find(model.without.begin(), model.without.end(), node.op().name) !=
        model.without.end())
      return false;
    return !needs_device_kernel(node.kind()) ||
           g_.kernels.find(node.op(), model.kernel_class, node.attrs()) != nullptr;
  }

  void propose(const std::vector<int>& ops, int to, std::string what) {
    std::map<int, int> where;
    for (const int op : ops) where[op] = to;
    propose(where, std::move(what));
  }

  // With the constants that nothing else reads.
  void propose(const std::map<int, int>& ops, std::string what) {
    std::map<int, int> where = ops;
    for (const auto& [op, to] : ops) {
      for (const int in : out_.ops[index(op)].inputs) {
        const auto& users = users_[index(in)];
        if (out_.ops[index(in)].is_constant &&
            std::all_of(users.begin(), users.end(), [&](int u) { return ops.contains(u); }))
          where[in] = to;
      }
    }
    Move move;
    move.what = std::move(what);
    for (const auto& [op, to] : where) {
      if (!movable(op, to)) return;
      move.ops.push_back(op);
      move.to.push_back(to);
      move.estimate += out_.ops[index(op)].seconds - g_.costs.seconds(*g_.order[index(op)], to);
    }
    if (!proposed_.insert({move.ops, move.to}).second) return;
    const auto goes_to = [&](int op, int memory) {
      const auto found = where.find(op);
      return found != where.end() && g_.placement.devices.memory_of(found->second) == memory;
    };
    for (const Explanation::Copy& copy : out_.copies) {
      if (goes_to(copy.maker, copy.to) ||
          (!copy.users.empty() && std::all_of(copy.users.begin(), copy.users.end(),
                                              [&](int user) { return goes_to(user, copy.from); })))
        move.estimate += copy.seconds;
    }
    moves_.push_back(std::move(move));
  }

  void propose_scopes() {
    std::map<std::string, std::vector<int>> scopes;
    for (std::size_t op = 0; op < out_.ops.size(); ++op) {
      const std::string& name = out_.ops[op].name;
      std::size_t end = name.find('/');
      for (int depth = 0; depth < 3 && end != std::string::npos; ++depth) {
        scopes[name.substr(0, end)].push_back(static_cast<int>(op));
        end = name.find('/', end + 1);
      }
    }
    for (const auto& [scope, ops] : scopes) {
      std::vector<int> moving;
      for (const int op : ops) {
        if (g_.order[index(op)]->kind() != NodeKind::kArg) moving.push_back(op);
      }
      if (moving.size() < 2) continue;
      const int here = out_.ops[index(moving.front())].device;
      const bool together = std::all_of(moving.begin(), moving.end(), [&](int op) {
        return out_.ops[index(op)].device == here || out_.ops[index(op)].is_constant;
      });
      if (!together) continue;
      for (int to = 0; to < static_cast<int>(out_.devices.size()); ++to) {
        if (to != here) propose(moving, to, cat("scope '", scope, "' (", moving.size(), " ops)"));
      }
    }
  }

  std::string named(int op) const {
    return cat(out_.ops[index(op)].name, " (", out_.ops[index(op)].op, ")");
  }

  void propose_single_ops() {
    constexpr std::size_t kMax = 64;
    std::vector<int> by_copies(out_.copies.size());
    for (std::size_t c = 0; c < by_copies.size(); ++c) by_copies[c] = static_cast<int>(c);
    std::stable_sort(by_copies.begin(), by_copies.end(), [&](int a, int b) {
      return out_.copies[index(a)].seconds > out_.copies[index(b)].seconds;
    });
    for (std::size_t i = 0; i < by_copies.size() && i < kMax; ++i) {
      const Explanation::Copy& copy = out_.copies[index(by_copies[i])];
      propose({copy.maker}, copy.to, named(copy.maker));
      if (copy.users.empty()) continue;
      propose(copy.users, copy.from,
              copy.users.size() == 1
                  ? named(copy.users.front())
                  : cat("the ", copy.users.size(), " ops that read ", copy.value));
    }
    std::vector<int> by_time;
    for (std::size_t op = 0; op < out_.ops.size(); ++op) {
      if (out_.ops[op].seconds > 0) by_time.push_back(static_cast<int>(op));
    }
    const std::size_t most = std::min(kMax, by_time.size());
    std::partial_sort(by_time.begin(), by_time.begin() + static_cast<std::ptrdiff_t>(most),
                      by_time.end(), [&](int a, int b) {
                        const double x = out_.ops[index(a)].seconds;
                        const double y = out_.ops[index(b)].seconds;
                        return x != y ? x > y : a < b;
                      });
    for (std::size_t i = 0; i < most; ++i) {
      for (int to = 0; to < static_cast<int>(out_.devices.size()); ++to) {
        if (to != out_.ops[index(by_time[i])].device) propose({by_time[i]}, to, named(by_time[i]));
      }
    }
  }

  void moves() {
    std::map<int, int> all;
    for (const Explanation::RoundTrip& stay : out_.back_and_forth) {
      const int home = out_.copies[index(stay.there.front())].from;
      for (const int op : stay.ops) all[op] = home;
      propose(stay.ops, home,
              stay.ops.size() == 1
                  ? named(stay.ops.front())
                  : cat(named(stay.ops.front()), " and ", stay.ops.size() - 1, " ops beside it"));
    }
    if (out_.back_and_forth.size() > 1)
      propose(all, cat("all ", all.size(), " ops that values go back and forth for"));
    propose_scopes();
    propose_single_ops();
    std::stable_sort(moves_.begin(), moves_.end(),
                     [](const Move& a, const Move& b) { return a.estimate > b.estimate; });
    const double tasks = static_cast<double>(out_.ops.size() + out_.copies.size() + 1);
    const auto most = static_cast<std::size_t>(std::clamp(kEffort / tasks, 3.0, 48.0));
    for (std::size_t i = 0; i < moves_.size() && i < most; ++i) try_move(moves_[i]);
    std::stable_sort(better_.begin(), better_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t i = 0; i < better_.size(); ++i) {
      const double step = better_[i].first;
      const Move* move = better_[i].second;  // clang: a lambda takes no structured binding
      // What is a part of a better move says nothing new.
      const bool part = std::any_of(
          better_.begin(), better_.begin() + static_cast<int>(i), [&](const auto& other) {
            return std::any_of(move->ops.begin(), move->ops.end(), [&](int op) {
              return std::binary_search(other.second->ops.begin(), other.second->ops.end(), op);
            });
          });
      if (!part) add(text_of(*move, step), move->ops, one_device(move->to), step);
    }
  }

  void try_move(const Move& move) {
    std::vector<int> saved;
    for (const int op : move.ops) {
      NodePlacement& node = placement_.nodes[index(g_.order[index(op)]->id())];
      node.device = move.to[saved.size()];
      saved.push_back(out_.ops[index(op)].device);
    }
    const Simulation simulation = simulate(TaskGraph::of(g_.graph, placement_, g_.costs));
    for (std::size_t i = 0; i < move.ops.size(); ++i)
      placement_.nodes[index(g_.order[index(move.ops[i])]->id())].device = saved[i];
    if (!worth_saying(simulation.makespan)) return;
    for (const int to : std::set<int>(move.to.begin(), move.to.end())) {
      const double limit = out_.devices[index(to)].memory_limit;
      const auto memory = index(g_.placement.devices.memory_of(to));
      if (limit > 0 && memory < simulation.peak_memory.size() &&
          simulation.peak_memory[memory] > limit)
        return;
    }
    better_.emplace_back(simulation.makespan, &move);
  }

  // -1: several.
  static int one_device(const std::vector<int>& devices) {
    const bool one =
        std::all_of(devices.begin(), devices.end(), [&](int d) { return d == devices.front(); });
    return one ? devices.front() : -1;
  }

  std::string text_of(const Move& move, double step) const {
    int speaker = move.ops.front();
    for (const int op : move.ops) {
      if (!out_.ops[index(op)].is_constant) speaker = op;
    }
    const Explanation::Op& op = out_.ops[index(speaker)];
    const int to = one_device(move.to);
    std::string text =
        cat("Move ", move.what, " from ", device(op.device), " to ",
            to < 0 ? "where their values come from" : device(to), ": ", gains(step), ".");
    if (op.by == PlacedBy::kRequest) {
      text += cat(" The scope asks for ", op.asked, ".");
    } else if (!op.reason.empty()) {
      text += cat(" Why it is there: ", op.reason, ".");
    }
    return text + not_measured(move.ops, move.to);
  }

  // Measured times here and modelled ones there compare badly, which the reader must know.
  std::string not_measured(const std::vector<int>& ops, const std::vector<int>& to) const {
    if (out_.costs_measured == 0) return {};
    std::set<int> modelled;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const Node& node = *g_.order[index(ops[i])];
      if (out_.ops[index(ops[i])].cost_measured && !g_.costs.measured(node, to[i]))
        modelled.insert(to[i]);
    }
    if (modelled.empty()) return {};
    std::string names;
    for (const int d : modelled) names += cat(names.empty() ? "" : ", ", device(d));
    return cat(" But times on ", names,
               " are modelled there and were measured here: try it with a "
               "profile before you trust the gain.");
  }

  const ExplainedGraph& g_;
  Explanation& out_;
  Placement placement_;  // to try moves on; without reasons
  std::vector<std::vector<int>> users_;
  std::vector<Move> moves_;
  std::set<std::pair<std::vector<int>, std::vector<int>>> proposed_;
  std::vector<std::pair<double, const Move*>> better_;
  std::vector<Explanation::Advice> found_;
};

}  // namespace

void explain_advice(const ExplainedGraph& g, Explanation& out) { Adviser(g, out)(); }

}  // namespace tandem
