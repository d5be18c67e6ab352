#include "tandem/runtime/explain/explainer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/internal/float_text.h"
#include "tandem/graph/internal/frames.h"
#include "tandem/runtime/execute/frame_tree.h"

namespace tandem {
namespace {

// Finding code lines takes long.
constexpr std::size_t kMaxTraced = 2000;

std::size_t index(int i) { return static_cast<std::size_t>(i); }

std::string number(double value) {
  return fixed_text(value, value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2);
}

std::string value_name(const Output& value) {
  return value.index ? cat(value.node->name(), ':', value.index) : value.node->name();
}

// Nodes after their inputs, also where loops close cycles.
std::vector<const Node*> in_order(const Graph& graph) {
  std::vector<const Node*> order;
  for (const Node* node : graph.topological_order()) order.push_back(node);
  return order;
}

// The next hop of a value that nothing reads where this copy brings it; null if there is none.
const Explanation::Copy* passes_through(const Explanation& e, const Explanation::Copy& copy) {
  if (!copy.users.empty()) return nullptr;
  const auto next = std::find_if(e.copies.begin(), e.copies.end(), [&](const auto& other) {
    return other.from == copy.to && other.value == copy.value;
  });
  return next == e.copies.end() ? nullptr : &*next;
}

class Explainer {
 public:
  Explainer(const ExplainedGraph& g, const profiler::Profile* profile, const std::string& function)
      : g_(g), profile_(profile), function_(function) {}

  Explanation operator()(bool advice) {
    out_.title = function_;
    out_.policy = g_.options.policy == PlacementPolicy::kCost ? "cost" : "greedy";
    const TaskGraph tasks = TaskGraph::of(g_.graph, g_.placement, g_.costs);
    const Simulation simulation = simulate(tasks);
    out_.step_seconds = simulation.makespan;
    devices();
    ops();
    copies(tasks);
    times(tasks, simulation);
    explain_memory(g_, tasks, simulation, out_);
    measured();
    loops();
    network();
    explain_round_trips(g_, out_);
    host_reads();
    notes();
    if (advice) explain_advice(g_, out_);
    return std::move(out_);
  }

 private:
  void devices() {
    for (int d = 0; d < g_.placement.devices.size(); ++d) {
      const DeviceModel& model = g_.placement.devices.devices[index(d)];
      Explanation::Device device;
      device.name = model.name();
      device.short_name = short_device_name(g_.placement.devices, d);
      device.task = short_task_name(model.spec);
      device.memory_limit = static_cast<double>(model.memory_bytes);
      device.lost = model.lost;
      out_.devices.push_back(std::move(device));
    }
  }

  void ops() {
    for (const Node* node : g_.order) {
      const NodePlacement& placed = g_.placement.of(*node);
      Explanation::Op op;
      op.name = node->name();
      op.op = node->op().name;
      if (!node->where().empty() && g_.order.size() <= kMaxTraced)
        op.where = node->where().to_string(1);
      op.device = placed.device;
      op.by = placed.by;
      op.reason = placed.reason;
      op.refused = placed.refused;
      op.asked = node->requested_device();
      op.is_constant = node->kind() == NodeKind::kConst;
      const DeviceModel& device = g_.placement.devices.devices[index(placed.device)];
      op.kernel = describe_kernel_choice(*node, device.kernel_class.c_str());
      for (int i = 0; i < node->num_outputs(); ++i) op.bytes += CostModel::output_bytes(*node, i);
      op.seconds = g_.costs.seconds(*node, placed.device);
      op.cost_measured = g_.costs.measured(*node, placed.device);
      for (const Output& in : node->inputs()) op.inputs.push_back(g_.op(*in.node));
      for (const Node* before : node->control_inputs()) op.controls.push_back(g_.op(*before));
      out_.costs_measured += op.cost_measured;
      ++out_.devices[index(placed.device)].ops;
      out_.ops.push_back(std::move(op));
    }
  }

  int device_of(int memory) const { return memory; }

  void copies(const TaskGraph& tasks) {
    for (const PlannedCopy& planned : tasks.copies) {
      Explanation::Copy copy;
      copy.value = value_name(planned.value);
      copy.maker = g_.op(*planned.value.node);
      copy.from = device_of(planned.from);
      copy.to = device_of(planned.to);
      copy.bytes = planned.bytes;
      copy.seconds = planned.seconds;
      out_.copies.push_back(std::move(copy));
    }
    // Who needs the value there.
    std::map<std::pair<std::pair<int, int>, int>, int> copy_of;  // (node, output), destination
    for (std::size_t c = 0; c < tasks.copies.size(); ++c) {
      const PlannedCopy& p = tasks.copies[c];
      copy_of[{{p.value.node->id(), p.value.index}, p.to}] = static_cast<int>(c);
    }
    for (const Node* node : g_.order) {
      for (int i = 0; i < static_cast<int>(node->inputs().size()); ++i) {
        const Output& in = node->inputs()[index(i)];
        const auto found =
            copy_of.find({{in.node->id(), in.index}, g_.placement.input_memory(*node, i)});
        if (found == copy_of.end()) continue;
        std::vector<int>& users = out_.copies[index(found->second)].users;
        if (users.empty() || users.back() != g_.op(*node)) users.push_back(g_.op(*node));
      }
    }
  }

  void times(const TaskGraph& tasks, const Simulation& simulation) {
    std::map<int, std::vector<double>> stream_ends;  // by device: when its streams are free
    for (const Simulation::Span& span : simulation.spans) {
      const Task& task = tasks.tasks[index(span.task)];
      const Lane& lane = tasks.lanes[index(task.lane)];
      Explanation::Span s;
      s.device = lane.device;
      s.begin = span.begin;
      s.end = span.end;
      if (task.copy >= 0) {
        s.copy = task.copy;
        out_.copies[index(task.copy)].begin = span.begin;
      }
      if (task.node) {
        s.op = g_.op(*task.node);
        out_.ops[index(s.op)].begin = span.begin;
      }
      if (lane.kind == Lane::kCompute) {
        out_.devices[index(lane.device)].seconds += span.end - span.begin;
        std::vector<double>& ends = stream_ends[lane.device];
        std::size_t stream = 0;
        while (stream < ends.size() && ends[stream] > span.begin) ++stream;
        if (stream == ends.size()) ends.push_back(0);
        ends[stream] = span.end;
        s.stream = static_cast<int>(stream);
      } else {
        s.stream = lane.kind == Lane::kCopyIn ? -1 : -2;
      }
      out_.spans.push_back(s);
    }
    for (std::size_t lane = 0; lane < tasks.lanes.size() && lane < simulation.busy.size(); ++lane) {
      if (tasks.lanes[lane].kind == Lane::kCompute)
        out_.devices[index(tasks.lanes[lane].device)].busy = simulation.busy[lane];
    }
  }

  // The mean of all threads that asked datasets for elements between two times.
  std::optional<double> input_waiting(double begin, double end) const {
    double sum = 0;
    std::set<int> tracks;
    for (const profiler::Event& event : profile_->events()) {
      if (event.kind != profiler::EventKind::kInput || event.end <= begin || event.begin >= end)
        continue;
      sum += std::min(event.end, end) - std::max(event.begin, begin);
      tracks.insert(event.track);
    }
    if (tracks.empty()) return std::nullopt;
    return sum / ((end - begin) * static_cast<double>(tracks.size()));
  }

  void measured() {
    if (!profile_) return;
    const auto times = profile_->node_times(function_);
    for (Explanation::Op& op : out_.ops) {
      const auto found = times.find(op.name);
      if (found != times.end()) op.measured = found->second;
    }
    double sum = 0, first = 0;
    double begin = 0, end = 0;
    struct Copied {
      double sum = 0, first = 0;
      int count = 0;
    };
    std::map<std::pair<std::string_view, std::string_view>, Copied> copied;
    for (const profiler::Event& event : profile_->events()) {
      if (event.kind == profiler::EventKind::kFunction && event.name == function_) {
        // The first call pays for caches, and for the recording's own notes.
        if (out_.measured_runs++ == 0) {
          first = event.end - event.begin;
          begin = event.begin;
        }
        end = std::max(end, event.end);
        sum += event.end - event.begin;
      } else if (event.kind == profiler::EventKind::kCopy && event.function == function_) {
        Copied& copy = copied[{event.name, event.to}];
        if (copy.count++ == 0) copy.first = event.end - event.begin;
        copy.sum += event.end - event.begin;
      }
    }
    if (out_.measured_runs == 0) {
      out_.notes.push_back(cat("The recording holds no call of '", function_, "'."));
      return;
    }
    const auto runs = static_cast<double>(out_.measured_runs);
    out_.measured_step = runs > 1 ? (sum - first) / (runs - 1) : first;
    out_.input_waiting = input_waiting(begin, end);
    for (Explanation::Copy& copy : out_.copies) {
      const auto found = copied.find({copy.value, out_.devices[index(copy.to)].name});
      if (found == copied.end()) continue;
      const Copied& total = found->second;
      copy.measured = total.count > 1 ? (total.sum - total.first) / (total.count - 1) : total.first;
      copy.per_step = total.count / runs;
    }
  }

  void loops() {
    if (!holds_control_flow(g_.graph)) return;
    const FrameTree tree(g_.graph, g_.graph.topological_order());
    for (Explanation::Copy& copy : out_.copies) {
      const Node* maker = g_.order[index(copy.maker)];
      copy.loop = tree.frames[index(tree.frame_of[index(maker->id())])].name;
    }
    if (tree.frames.size() > 1) {
      out_.notes.push_back(
          "The graph has loops: expected times are those of one iteration of each.");
    } else {
      out_.notes.push_back("The graph has branches: expected times are those of all of them.");
    }
  }

  void network() {
    const DeviceSet& devices = g_.placement.devices;
    std::map<std::pair<int, int>, Explanation::Transfer> transfers;
    for (std::size_t c = 0; c < out_.copies.size(); ++c) {
      const Explanation::Copy& copy = out_.copies[c];
      const int from = devices.host_of(copy.from), to = devices.host_of(copy.to);
      if (from == to) continue;
      Explanation::Transfer& transfer = transfers[{from, to}];
      transfer.from = from;
      transfer.to = to;
      transfer.copies.push_back(static_cast<int>(c));
      transfer.bytes += copy.bytes * copy.per_step;
      transfer.seconds += copy.seconds * copy.per_step;
    }
    const auto seconds = [&](int c) {
      return out_.copies[index(c)].seconds * out_.copies[index(c)].per_step;
    };
    for (auto& [ends, transfer] : transfers) {
      std::stable_sort(transfer.copies.begin(), transfer.copies.end(),
                       [&](int a, int b) { return seconds(a) > seconds(b); });
      out_.network.push_back(std::move(transfer));
    }
    std::stable_sort(out_.network.begin(), out_.network.end(),
                     [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  }

  void host_reads() {
    constexpr double kSmall = 4096;
    const DeviceSet& devices = g_.placement.devices;
    for (std::size_t c = 0; c < out_.copies.size(); ++c) {
      // A variable that host ops use is in the wrong place, not read back.
      const Node& maker = *g_.order[index(out_.copies[c].maker)];
      const bool variable =
          std::any_of(maker.inputs().begin(), maker.inputs().end(), [](const Output& in) {
            const DType dtype = in.node->output_dtype(in.index);
            return is_ref(dtype) || dtype == DType::kResource;
          });
      const Explanation::Copy& copy = out_.copies[c];
      const bool to_own_host = devices.host_of(copy.from) == copy.to;
      if (to_own_host && copy.bytes <= kSmall && !variable && !passes_through(out_, copy))
        out_.host_reads.push_back(static_cast<int>(c));
    }
  }

  void notes() {
    for (const Explanation::Device& device : out_.devices) {
      if (!device.lost.empty()) {
        out_.notes.push_back(
            cat(device.short_name, " is lost: ", device.lost, ". Nothing is placed on it."));
      }
    }
    std::size_t calls = 0, unknown = 0;
    bool open_arguments = false;
    for (const Node* node : g_.order) {
      calls += calls_functions(node->kind());
      bool open = false;
      for (int i = 0; i < node->num_outputs(); ++i) {
        const PartialShape& shape = node->output_shape(i);
        open |= !shape.is_fully_known() && !is_object(node->output_dtype(i));
      }
      unknown += open;
      open_arguments |= open && node->kind() == NodeKind::kArg;
    }
    if (calls > 0) {
      out_.notes.push_back(cat(counted(calls, "op runs a function", "ops run functions"),
                               " of their own, whose ops count as one here."));
    }
    if (unknown > 0) {
      out_.notes.push_back(cat(counted(unknown, "op has an output", "ops have outputs"),
                               " of unknown size, which count with 1 for each unknown dimension",
                               open_arguments ? ": give more of the arguments' shapes."
                                              : ", as they depend on values or go round a loop."));
    }
  }

  const ExplainedGraph& g_;
  const profiler::Profile* profile_;
  const std::string& function_;
  Explanation out_;
};

}  // namespace

std::string short_device_name(const DeviceSet& devices, int device) {
  const DeviceSpec& spec = devices.devices[index(device)].spec;
  const std::string name = cat(spec.type.value_or("?"), ':', spec.index.value_or(0));
  for (int d = 0; d < devices.size(); ++d) {
    const DeviceSpec& other = devices.devices[index(d)].spec;
    if (d != device && other.task_spec() != spec.task_spec())
      return cat(short_task_name(spec), '/', name);
  }
  return name;
}

std::string short_task_name(const DeviceSpec& device) {
  const DeviceSpec task = device.task_spec();
  if (task.replica.value_or(0) != 0) return task.to_string();
  return cat("/job:", task.job.value_or("?"), "/task:", task.task.value_or(0));
}

std::string readers_text(const Explanation& e, const Explanation::Copy& copy,
                         std::size_t most_named) {
  if (copy.users.empty()) {
    const Explanation::Copy* next = passes_through(e, copy);
    return next ? cat("on its way to ", e.devices[index(next->to)].short_name) : "the result";
  }
  std::string text;
  for (std::size_t u = 0; u < copy.users.size() && u < most_named; ++u)
    text += cat(u ? ", " : "", e.ops[index(copy.users[u])].name);
  if (copy.users.size() > most_named) text += cat(" and ", copy.users.size() - most_named, " more");
  return text;
}

std::string seconds_text(double seconds) {
  const double size = seconds < 0 ? -seconds : seconds;
  const std::string sign = seconds < 0 ? "-" : "";
  if (size == 0) return "0";
  if (size < 0.9995e-6) return sign + number(size * 1e9) + " ns";
  if (size < 0.9995e-3) return sign + number(size * 1e6) + " us";
  if (size < 0.9995) return sign + number(size * 1e3) + " ms";
  return sign + number(size) + " s";
}

std::string candidates_text(const KernelChoice& choice) {
  std::vector<KernelChoice::Candidate> sorted = choice.candidates;
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return (a.seconds > 0 ? a.seconds : HUGE_VAL) < (b.seconds > 0 ? b.seconds : HUGE_VAL);
  });
  std::string text;
  for (const KernelChoice::Candidate& c : sorted) {
    text += cat(text.empty() ? "" : ", ", c.name);
    if (!c.refused.empty()) {
      text += cat(" (", c.refused, ')');
    } else if (c.seconds > 0) {
      text += cat(' ', seconds_text(c.seconds));
    }
  }
  return text;
}

std::string bytes_text(double bytes) {
  static const char* const kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) return cat(static_cast<long long>(bytes), " B");
  int unit = -1;
  while (bytes >= 1023.5 && unit < 4) {
    bytes /= 1024;
    ++unit;
  }
  return cat(number(bytes), ' ', kUnits[std::max(unit, 0)]);
}

std::string percent_text(double share) { return cat(fixed_text(100 * share, 1), " %"); }

std::string counted(std::size_t count, const char* one, const char* many) {
  return cat(count, ' ', count == 1 ? one : many);
}

std::string mean_of(int calls) {
  if (calls <= 1) return "one call";
  return cat("mean of ", counted(static_cast<std::size_t>(calls - 1), "call", "calls"),
             " after a first");
}

Explanation explain_placement(const Graph& graph, const Placement& placement,
                              const CostModel& costs, const KernelRegistry& kernels,
                              const std::string& function, const PlacementOptions& options,
                              const profiler::Profile* profile, bool advice) {
  ExplainedGraph g{graph, placement, costs, kernels, options, in_order(graph), {}};
  g.op_of.assign(index(graph.id_limit()), -1);
  for (std::size_t i = 0; i < g.order.size(); ++i)
    g.op_of[index(g.order[i]->id())] = static_cast<int>(i);
  return Explainer(g, profile, function)(advice);
}

}  // namespace tandem
