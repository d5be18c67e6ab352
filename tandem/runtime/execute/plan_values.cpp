// Where the values of a plan lie, and when they are over.

#include <algorithm>
#include <bit>

#include "tandem/core/error.h"
#include "tandem/runtime/execute/memory_plan.h"
#include "tandem/runtime/execute/memory_rules.h"
#include "tandem/runtime/execute/plan.h"
#include "tandem/runtime/execute/plan_lifetimes.h"

namespace tandem {
namespace {

// Which steps are known to be over when another begins. In a sequential plan those that stand
// before it, in a dataflow plan those that it depends on.
class Precedence {
 public:
  Precedence(const std::vector<Step>& steps, Schedule schedule)
      : sequential_(schedule == Schedule::kSequential) {
    constexpr std::size_t kLargest =
        8192;  // beyond, nothing is known to precede: more memory, less planning
    if (sequential_ || steps.size() > kLargest) return;
    words_ = (steps.size() + 63) / 64;
    ancestors_.assign(steps.size() * words_, 0);
    for (std::size_t s = 0; s < steps.size(); ++s) {
      for (int b : steps[s].before) {
        const auto before = static_cast<std::size_t>(b);
        for (std::size_t w = 0; w < words_; ++w)
          ancestors_[s * words_ + w] |= ancestors_[before * words_ + w];
        ancestors_[s * words_ + before / 64] |= std::uint64_t{1} << (before % 64);
      }
    }
  }
  bool is_known() const { return sequential_ || !ancestors_.empty(); }
  // True if each step precedes all that have a greater number, or none precedes another.
  bool is_known_by_number() const { return ancestors_.empty(); }
  bool operator()(int first, int then) const {
    if (sequential_) return first < then;
    if (ancestors_.empty()) return false;
    return (ancestors_[static_cast<std::size_t>(then) * words_ +
                       static_cast<std::size_t>(first) / 64] >>
            (static_cast<std::size_t>(first) % 64)) &
           1;
  }
  // Whether all of these are over when step `s` begins, but for itself if `or_itself`.
  bool all_over(const std::vector<int>& steps, int s, bool or_itself = false) const {
    return std::all_of(steps.begin(), steps.end(),
                       [&](int t) { return (*this)(t, s) || (or_itself && t == s); });
  }

 private:
  bool sequential_;
  std::size_t words_ = 0;
  std::vector<std::uint64_t> ancestors_;
};

auto& at(auto& v, int i) { return v[static_cast<std::size_t>(i)]; }

// Elements of the largest value that is planned: sums of sizes stay far below 2^64.
constexpr std::int64_t kMaxPlanned = std::int64_t{1} << 40;

}  // namespace

void Plan::plan_lifetimes() {
  const auto slots = static_cast<std::size_t>(num_slots_);
  Lifetimes life;
  life.root.resize(slots);
  life.touched.resize(slots);
  life.owned_outside.assign(slots, 0);
  life.last_use.assign(slots, -1);
  readers_.assign(slots, 0);
  for (std::size_t s = 0; s < slots; ++s) life.root[s] = static_cast<int>(s);
  for (int slot : arg_slots_) at(life.owned_outside, slot) = 1;
  for (const auto& [slot, value] : constants_) at(life.owned_outside, slot) = 1;
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    const Step& step = steps_[s];
    const auto touch = [&](int slot) {
      at(life.touched, at(life.root, slot)).push_back(static_cast<int>(s));
      at(life.last_use, slot) = static_cast<int>(s);
    };
    for (std::size_t o = 0; o < step.outputs.size(); ++o) {
      if (shares_input(step, o)) at(life.root, step.outputs[o]) = at(life.root, step.inputs[o]);
    }
    for (std::size_t i = 0; i < step.inputs.size(); ++i) {
      touch(step.inputs[i]);
      ++at(readers_, step.inputs[i]);
      if (retains_input(step, i)) at(life.owned_outside, at(life.root, step.inputs[i])) = 1;
    }
    for (int slot : step.outputs) touch(slot);
  }
  for (int slot : result_slots_) at(life.owned_outside, at(life.root, slot)) = 1;
  choose_host_reads(life);
  choose_planned_values(life);
  plan_releases(life);
}

// Values whose shapes are known, or follow from sizes that vary, get a place in the arena; an op
// that may write over an input takes that input's place if nothing can read it any more.
void Plan::choose_planned_values(const Lifetimes& life) {
  const Precedence precedes(steps_, schedule_);
  VaryingSizes::Inferred inferred;
  if (varying_) inferred = varying_->infer(*function_);
  const auto shape_of = [&](const Node& node, int output) -> std::optional<SymbolicShape> {
    const PartialShape& known = node.output_shape(output);
    if (known.is_fully_known()) {
      const Shape shape = known.to_shape();  // of what is too large the allocation may fail, typed
      if (shape.num_elements() > kMaxPlanned) return std::nullopt;
      return SymbolicShape(shape);
    }
    const SymbolicShape* const shape = inferred.of(node, output);
    // Places for the largest sizes have to do for smaller ones.
    if (!shape || !shape->never_shrinks()) return std::nullopt;
    return *shape;
  };
  std::vector<int> place(static_cast<std::size_t>(num_slots_), -1);  // in values_, by root
  for (int s = 0; s < static_cast<int>(steps_.size()); ++s) {
    Step& step = at(steps_, s);
    if (!makes_plain_value(*step.node)) continue;
    for (std::size_t o = 0; o < step.outputs.size() && o < 64; ++o) {
      const int slot = step.outputs[o];
      const DType dtype = step.output_dtypes[o];
      if (at(life.root, slot) != slot || at(life.owned_outside, slot) || is_object(dtype) ||
          is_ref(dtype) || owns_output_memory(step, o))
        continue;
      const std::optional<SymbolicShape> shape = shape_of(*step.node, static_cast<int>(o));
      if (!shape) continue;
      const auto place_of = [&](std::size_t input) {
        return at(place, at(life.root, step.inputs[input]));
      };
      const int reused = input_to_reuse(step, o, [&](std::size_t i) {
        const int source = place_of(i);
        // As many bytes of smaller elements are another number of them, which broadcast.
        const Output in = step.node->inputs()[i];
        if (source < 0 || dtype_size(in.node->output_dtype(in.index)) != dtype_size(dtype))
          return false;
        const ArenaValue& value = at(values_, source);
        if (value.element_bytes != dtype_size(dtype) || !value.shape.same_elements(*shape) ||
            value.memory != slot_memory(slot) || !precedes.all_over(value.touched, s, true))
          return false;
        // The step may read the same memory as another input too, in an order of its own.
        const std::uint32_t reusable = step.node->op().traits.may_reuse;
        for (std::size_t j = 0; j < step.inputs.size(); ++j) {
          if ((j >= 32 || !((reusable >> j) & 1)) && place_of(j) == source) return false;
        }
        return true;
      });
      const std::vector<int>& mine = at(life.touched, slot);
      int index = reused < 0 ? -1 : place_of(static_cast<std::size_t>(reused));
      if (index < 0) {
        index = static_cast<int>(values_.size());
        values_.push_back({*shape, dtype_size(dtype), slot_memory(slot),
                           *std::min_element(mine.begin(), mine.end()), mine});
      } else {
        at(values_, index).touched = mine;
      }
      at(place, slot) = index;
      step.planned_outputs |= std::uint64_t{1} << o;
      planned_.push_back({slot, dtype, *shape, index, slot_memory(slot)});
    }
  }
  name_arenas();
  const auto may_overlap = [&](std::size_t a, std::size_t b) {
    return !precedes.all_over(values_[a].touched, values_[b].begins) &&
           !precedes.all_over(values_[b].touched, values_[a].begins);
  };
  if (!varying_) {
    layout_ = lay_out({}, [&](const auto& values, const auto& sizes, auto& offsets) {
      if (values.size() <= kMaxComparedValues || !precedes.is_known_by_number()) {
        return plan_memory(
            sizes, [&](std::size_t i, std::size_t j) { return may_overlap(values[i], values[j]); },
            offsets);
      }
      std::vector<int> from, to;
      for (const std::size_t v : values) {
        const std::vector<int>& touched = values_[v].touched;
        from.push_back(precedes.is_known() ? values_[v].begins : 0);
        to.push_back(precedes.is_known() ? *std::max_element(touched.begin(), touched.end()) : 0);
      }
      return plan_memory_by_steps(sizes, from, to, offsets);
    });
  } else {
    overlaps_.resize(values_.size() * values_.size());
    for (std::size_t a = 0; a < values_.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b)
        overlaps_[a * values_.size() + b] = overlaps_[b * values_.size() + a] = may_overlap(a, b);
    }
  }
  for (ArenaValue& v : values_) v.touched = {};
  if (!varying_) values_ = {};
}

bool Plan::has_arena(int memory) const {
  if (layout_) return layout_->bytes[static_cast<std::size_t>(memory)] != 0;
  return std::any_of(values_.begin(), values_.end(),
                     [&](const ArenaValue& v) { return v.memory == memory; });
}

// Null if a value is too large.
std::shared_ptr<const Plan::Layout> Plan::lay_out(SymbolValues capacity,
                                                  const LayOutMemory& memory) const {
  auto layout = std::make_shared<Layout>();
  layout->capacity.assign(capacity.begin(), capacity.end());
  layout->offsets.resize(values_.size());
  layout->bytes.assign(devices_.size(), 0);
  for (std::size_t m = 0; m < devices_.size(); ++m) {
    std::vector<std::size_t> values, sizes, offsets;  // of this memory
    for (std::size_t v = 0; v < values_.size(); ++v) {
      if (values_[v].memory != static_cast<int>(m)) continue;
      const auto elements = values_[v].shape.elements_at(capacity, kMaxPlanned);
      if (!elements) return nullptr;
      values.push_back(v);
      sizes.push_back(static_cast<std::size_t>(*elements) * values_[v].element_bytes);
    }
    layout->bytes[m] = memory(values, sizes, offsets);
    for (std::size_t i = 0; i < values.size(); ++i) layout->offsets[values[i]] = offsets[i];
  }
  return layout;
}

// Sizes that grow from call to call soon find a layout that is large enough: with a reserve it
// serves sizes up to the next power of two.
std::shared_ptr<const Plan::Layout> Plan::layout_for(SymbolValues sizes, bool with_reserve) const {
  const auto by_overlaps = [&](const auto& values, const auto& bytes, auto& offsets) {
    return plan_memory(
        bytes,
        [&](std::size_t i, std::size_t j) {
          return static_cast<bool>(overlaps_[values[i] * values_.size() + values[j]]);
        },
        offsets);
  };
  if (!with_reserve) return lay_out(sizes, by_overlaps);
  std::vector<std::int64_t> capacity;
  {
    std::lock_guard lock(layouts_mutex_);
    if (largest_layout_ && std::equal(sizes.begin(), sizes.end(), largest_layout_->capacity.begin(),
                                      [](auto size, auto most) { return size <= most; }))
      return largest_layout_;
    if (largest_layout_) capacity = largest_layout_->capacity;
  }
  capacity.resize(sizes.size(), 0);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto size = static_cast<std::uint64_t>(std::min(sizes[i], kMaxPlanned));
    capacity[i] = std::max(capacity[i], static_cast<std::int64_t>(std::bit_ceil(size)));
  }
  auto layout = lay_out(capacity, by_overlaps);
  if (!layout) return lay_out(sizes, by_overlaps);
  std::lock_guard lock(layouts_mutex_);
  if (!largest_layout_ ||
      std::equal(largest_layout_->capacity.begin(), largest_layout_->capacity.end(),
                 capacity.begin(), [](auto known, auto now) { return known <= now; }))
    largest_layout_ = layout;
  return layout;
}

// For messages that memory does not suffice.
void Plan::name_arenas() {
  arena_names_.assign(devices_.size(), "values between the steps of a function");
  if (varying_) return;
  std::vector<const PlannedSlot*> largest(devices_.size(), nullptr);
  const auto bytes = [](const PlannedSlot& p) {
    return static_cast<std::size_t>(*p.shape.elements_at({}, kMaxPlanned)) * dtype_size(p.dtype);
  };
  for (const PlannedSlot& p : planned_) {
    const PlannedSlot*& most = largest[static_cast<std::size_t>(p.memory)];
    if (!most || bytes(p) > bytes(*most)) most = &p;
  }
  for (const Step& step : steps_) {
    for (std::size_t m = 0; m < largest.size(); ++m) {
      if (!largest[m] || std::find(step.outputs.begin(), step.outputs.end(), largest[m]->slot) ==
                             step.outputs.end())
        continue;
      arena_names_[m] += cat(", the largest ", largest[m]->dtype, largest[m]->shape.at({}), " of ",
                             step.node->name(), " (", step.node->op().name, ")");
    }
  }
}

// What is neither planned nor constant is released after its last reader, which may take over its
// memory.
void Plan::plan_releases(const Lifetimes& life) {
  const auto slots = static_cast<std::size_t>(num_slots_);
  std::vector<std::uint8_t> stays(slots, 0), is_result(slots, 0);
  for (const PlannedSlot& p : planned_) at(stays, p.slot) = 1;
  for (const auto& [slot, value] : constants_) at(stays, slot) = 1;
  for (int slot : result_slots_) at(is_result, slot) = 1;
  for (std::size_t s = 0; s < slots; ++s) {
    const int last_use = life.last_use[s];
    if (stays[s] || is_result[s] || last_use < 0) readers_[s] = 0;
    if (stays[s]) continue;
    if (is_result[s] || last_use < 0) {
      cleared_slots_.push_back(static_cast<int>(s));
      continue;
    }
    if (schedule_ == Schedule::kDataflow)
      cleared_slots_.push_back(static_cast<int>(s));  // readers of failed steps never come
    Step& step = at(steps_, last_use);
    step.release.push_back(static_cast<int>(s));
    const bool sole = readers_[s] == 1 || schedule_ == Schedule::kSequential;
    for (std::size_t i = 0; i < step.inputs.size() && i < 64; ++i) {
      const auto once = [&] {
        return std::count(step.inputs.begin(), step.inputs.end(), step.inputs[i]) == 1;
      };
      if (step.inputs[i] == static_cast<int>(s) && sole && once())
        step.owned_inputs |= std::uint64_t{1} << i;
    }
  }
}

}  // namespace tandem
