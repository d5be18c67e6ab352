#include <string>

#include <nlohmann/json.hpp>

#include "tandem/runtime/explain.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

std::size_t index(int i) { return static_cast<std::size_t>(i); }

const char* name_of(PlacedBy by) {
  switch (by) {
    case PlacedBy::kRequest: return "request";
    case PlacedBy::kColocation: return "colocation";
    case PlacedBy::kOnlyKernel: return "only kernel";
    case PlacedBy::kSoft: return "fallback";
    case PlacedBy::kGreedy: return "greedy";
    case PlacedBy::kHostMemory: return "host memory";
    case PlacedBy::kNear: return "near";
    case PlacedBy::kCost: return "cost";
  }
  return "?";
}

class JsonWriter {
 public:
  explicit JsonWriter(const Explanation& e) : e_(e) {}

  Json operator()() const {
    Json json{{"title", e_.title},
              {"policy", e_.policy},
              {"step_seconds", e_.step_seconds},
              {"measured_step_seconds", number(e_.measured_step)},
              {"measured_runs", e_.measured_runs},
              {"input_waiting", number(e_.input_waiting)},
              {"plans_made", e_.plans_made},
              {"plans_shared", e_.plans_shared},
              {"costs_measured", e_.costs_measured},
              {"copied_bytes", e_.copied_bytes()},
              {"copy_seconds", e_.copy_seconds()},
              {"network_bytes", e_.network_bytes()},
              {"network_seconds", e_.network_seconds()},
              {"notes", e_.notes}};
    json["devices"] = list(e_.devices, [&](const auto& d) { return of(d); });
    json["ops"] = list(e_.ops, [&](const auto& op) { return of(op); });
    json["copies"] = list(e_.copies, [&](const auto& copy) { return of(copy); });
    json["network"] = list(e_.network, [&](const auto& t) { return of(t); });
    json["back_and_forth"] = list(e_.back_and_forth, [&](const auto& b) { return of(b); });
    json["host_reads"] =
        list(e_.host_reads, [&](int c) { return Json(e_.copies[index(c)].value); });
    json["advice"] = list(e_.advice, [&](const auto& a) { return of(a); });
    json["fusions"] = list(e_.fusions, [&](const auto& f) { return of(f); });
    json["timeline"] = list(e_.spans, [&](const auto& s) { return of(s); });
    return json;
  }

 private:
  template <class Entries, class Of>
  static Json list(const Entries& entries, Of of) {
    Json json = Json::array();
    for (const auto& entry : entries) json.push_back(of(entry));
    return json;
  }
  static Json number(const std::optional<double>& value) { return value ? Json(*value) : Json(); }
  const std::string& device(int d) const { return e_.devices[index(d)].name; }
  Json ops(const std::vector<int>& numbers) const {
    return list(numbers, [&](int op) { return Json(e_.ops[index(op)].name); });
  }

  Json of(const Explanation::Device& d) const {
    Json memory = Json::array();
    for (const auto& [time, bytes] : d.memory) memory.push_back({time, bytes});
    return {{"name", d.name},
            {"short_name", d.short_name},
            {"task", d.task},
            {"ops", d.ops},
            {"busy", d.busy},
            {"seconds", d.seconds},
            {"memory_peak", d.memory_peak},
            {"memory_limit", d.memory_limit},
            {"lost", d.lost},
            {"memory", std::move(memory)}};
  }
  Json of(const Explanation::Fusion& f) const {
    return {{"ops", f.ops},   {"node", f.node},     {"op", f.op},    {"device", device(f.device)},
            {"made", f.made}, {"reason", f.reason}, {"text", f.text}};
  }
  Json of(const Explanation::Op& op) const {
    return {{"name", op.name},
            {"op", op.op},
            {"device", device(op.device)},
            {"by", name_of(op.by)},
            {"reason", op.reason},
            {"refused", op.refused},
            {"asked", op.asked},
            {"where", op.where},
            {"output_bytes", op.bytes},
            {"seconds", op.seconds},
            {"cost_measured", op.cost_measured},
            {"begin", op.begin < 0 ? Json() : Json(op.begin)},
            {"measured_seconds", op.measured ? Json(op.measured->seconds) : Json()},
            {"measured_runs", op.measured ? Json(op.measured->runs) : Json()},
            {"inputs", ops(op.inputs)},
            {"controls", ops(op.controls)},
            {"is_constant", op.is_constant},
            {"kernel", op.kernel ? of(*op.kernel) : Json()}};
  }
  Json of(const KernelChoice& choice) const {
    return {{"problem", choice.problem},
            {"chosen", choice.chosen},
            {"reason", choice.reason},
            {"threads", choice.threads},
            {"candidates", list(choice.candidates, [](const KernelChoice::Candidate& c) {
               return Json{{"name", c.name},
                           {"seconds", c.seconds > 0 ? Json(c.seconds) : Json()},
                           {"refused", c.refused}};
             })}};
  }
  Json of(const Explanation::Copy& copy) const {
    return {{"value", copy.value},
            {"maker", e_.ops[index(copy.maker)].name},
            {"users", ops(copy.users)},
            {"from", device(copy.from)},
            {"to", device(copy.to)},
            {"bytes", copy.bytes},
            {"per_step", copy.per_step},
            {"loop", copy.loop},
            {"seconds", copy.seconds},
            {"begin", copy.begin < 0 ? Json() : Json(copy.begin)},
            {"measured_seconds", number(copy.measured)}};
  }
  Json values(const std::vector<int>& copies) const {
    return list(copies, [&](int c) { return Json(e_.copies[index(c)].value); });
  }
  Json of(const Explanation::Transfer& t) const {
    return {{"from", e_.devices[index(t.from)].task},
            {"to", e_.devices[index(t.to)].task},
            {"values", values(t.copies)},
            {"bytes", t.bytes},
            {"seconds", t.seconds}};
  }
  Json of(const Explanation::RoundTrip& b) const {
    return {{"device", device(b.at)},
            {"there", values(b.there)},
            {"back", values(b.back)},
            {"ops", ops(b.ops)},
            {"bytes", b.bytes},
            {"copy_seconds", b.copy_seconds},
            {"work_seconds", b.work_seconds},
            {"text", b.text}};
  }
  Json of(const Explanation::Advice& a) const {
    return {{"text", a.text},
            {"ops", ops(a.ops)},
            {"to", a.ops.empty() || a.to < 0 ? Json() : Json(device(a.to))},
            {"step_seconds", a.step_seconds},
            {"gain_seconds", a.gain}};
  }
  Json of(const Explanation::Span& s) const {
    return {{"device", device(s.device)},
            {"stream", s.stream == -1   ? std::string("copy in")
                       : s.stream == -2 ? std::string("copy out")
                                        : "compute " + std::to_string(s.stream)},
            {"op", s.op < 0 ? Json() : Json(e_.ops[index(s.op)].name)},
            {"copy", s.copy < 0 ? Json() : Json(e_.copies[index(s.copy)].value)},
            {"begin", s.begin},
            {"end", s.end}};
  }

  const Explanation& e_;
};

}  // namespace

std::string Explanation::to_json() const {
  return JsonWriter(*this)().dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace tandem
