#include "tandem/kernels/cpu/fused/fused_program.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/half.h"
#include "tandem/kernels/cpu/elementwise/float16_rows.h"
#include "tandem/kernels/cpu/support/prefetch.h"

namespace tandem::cpu {
namespace {

// Repeats an input over a shape that it broadcasts to in no simple way: piece by piece, where a
// piece lies together in the input, or is one element repeated.
Array expand(const Array& input, const Shape& shape) {
  Array all(input.dtype(), shape);
  const auto size = static_cast<std::int64_t>(dtype_size(input.dtype()));
  const int rank = shape.rank(), shift = rank - input.rank();
  std::vector<std::int64_t> strides(static_cast<std::size_t>(rank), 0);
  std::int64_t stride = 1;
  for (int i = input.rank() - 1; i >= 0; --i) {
    if (input.shape()[i] != 1) strides[static_cast<std::size_t>(i + shift)] = stride;
    stride *= input.shape()[i];
  }
  const bool repeats = strides.back() == 0;
  int outer = rank;  // axes before the pieces
  while (outer > 0 && (strides[static_cast<std::size_t>(outer - 1)] == 0) == repeats) --outer;
  const std::int64_t piece = shape.product(outer, rank);
  const std::int64_t pieces = piece == 0 ? 0 : shape.num_elements() / piece;
  auto* to = static_cast<std::byte*>(all.raw_data());
  std::vector<std::int64_t> at(static_cast<std::size_t>(outer), 0);
  for (std::int64_t k = 0; k < pieces; ++k, to += piece * size) {
    std::int64_t from = 0;
    for (std::size_t i = 0; i < at.size(); ++i) from += at[i] * strides[i];
    const std::byte* source = static_cast<const std::byte*>(input.raw_data()) + from * size;
    if (repeats) {
      for (std::int64_t i = 0; i < piece; ++i)
        std::memcpy(to + i * size, source, static_cast<std::size_t>(size));
    } else {
      std::memcpy(to, source, static_cast<std::size_t>(piece * size));
    }
    for (std::size_t i = at.size(); i-- > 0;) {
      if (++at[i] < shape[static_cast<int>(i)]) break;
      at[i] = 0;
    }
  }
  return all;
}

}  // namespace

ElementLoops float_loops_of(std::string_view op) {
  const KernelDecl* best = nullptr;
  for (const auto* r = KernelRegistration::newest(); r; r = r->next()) {
    const KernelDecl& k = r->decl();
    if (op == k.op && k.float_loops && (!best || k.priority > best->priority)) best = &k;
  }
  if (!best) throw UnimplementedError(cat("Op ", op, " cannot be part of a fused op."));
  return best->float_loops();
}

FusedProgram::FusedProgram(const std::vector<std::string>& ops,
                           const std::vector<std::int64_t>& numbers, int inputs,
                           std::vector<std::int64_t> results)
    : inputs_(inputs) {
  if (results.empty()) results = {-static_cast<std::int64_t>(ops.size())};
  for (const std::int64_t number : results) {
    if (number >= inputs || number < -static_cast<std::int64_t>(ops.size()))
      throw InvalidArgumentError(cat("`ops` and the inputs have no result ", number, "."));
  }
  std::size_t next = 0;
  const auto take = [&] {
    if (next == numbers.size()) throw InvalidArgumentError("`operands` is too short for `ops`.");
    return numbers[next++];
  };
  struct Raw {
    ElementLoops loops;
    std::vector<std::int64_t> operands;
  };
  std::vector<Raw> raw;
  for (std::size_t k = 0; k < ops.size(); ++k) {
    Raw r{float_loops_of(ops[k]), {}};
    const std::int64_t count = take();
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t number = take();
      const bool is_input = number >= 0 && number < inputs_;
      const bool is_result = number < 0 && -1 - number < static_cast<std::int64_t>(k);
      if (!is_input && !is_result) {
        throw InvalidArgumentError(cat("Op ", k, " of `ops` has no operand ", number, "."));
      }
      r.operands.push_back(number);
    }
    const std::size_t operands = r.operands.size();
    if (operands == 0 || (operands == 1 && !r.loops.unary && !r.loops.copies && !r.loops.binary) ||
        (operands > 1 && !r.loops.binary)) {
      throw InvalidArgumentError(cat("Op ", ops[k], " does not take ", operands, " operands."));
    }
    cost_ += r.loops.copies ? 0 : r.loops.cost;
    raw.push_back(std::move(r));
  }
  if (raw.empty()) throw InvalidArgumentError("`ops` must name an op at least.");
  if (next != numbers.size()) throw InvalidArgumentError("`operands` is too long for `ops`.");

  std::vector<std::size_t> last_use(raw.size(), 0);
  // Copies are their operand; find what each result is in the end.
  std::vector<std::int64_t> real(raw.size());
  const auto resolve = [&](std::int64_t number) {
    return number < 0 ? real[static_cast<std::size_t>(-1 - number)] : number;
  };
  const auto is_copy = [](const Raw& r) {
    return r.operands.size() == 1 && !r.loops.unary;  // a sum of one is a copy too
  };
  for (std::size_t k = 0; k < raw.size(); ++k) {
    for (std::int64_t& number : raw[k].operands) {
      number = resolve(number);
      if (number < 0) last_use[static_cast<std::size_t>(-1 - number)] = k;
    }
    real[k] = is_copy(raw[k]) ? raw[k].operands[0] : -1 - static_cast<std::int64_t>(k);
  }
  for (const std::int64_t number : results) {
    if (const std::int64_t result = resolve(number); result < 0)
      last_use[static_cast<std::size_t>(-1 - result)] = raw.size();
  }

  std::vector<int> step_of(raw.size(), -1), free;
  const auto value_of = [&](std::int64_t number) {
    return number >= 0 ? static_cast<int>(number)
                       : inputs_ + step_of[static_cast<std::size_t>(-1 - number)];
  };
  for (std::size_t k = 0; k < raw.size(); ++k) {
    if (is_copy(raw[k])) continue;
    Step step{raw[k].loops, {}, 0};
    for (const std::int64_t number : raw[k].operands) step.operands.push_back(value_of(number));
    // Operands' buffers are freed only now: with more than two of them a step writes before it has
    // read them all.
    if (free.empty()) {
      step.buffer = buffers_++;
    } else {
      step.buffer = free.back();
      free.pop_back();
    }
    step_of[k] = static_cast<int>(steps_.size());
    for (const std::int64_t number : raw[k].operands) {
      if (number >= 0) continue;
      const auto producer = static_cast<std::size_t>(-1 - number);
      const int buffer = steps_[static_cast<std::size_t>(step_of[producer])].buffer;
      if (last_use[producer] == k && std::find(free.begin(), free.end(), buffer) == free.end())
        free.push_back(buffer);
    }
    steps_.push_back(std::move(step));
  }
  for (const std::int64_t number : results) results_.push_back(value_of(resolve(number)));
  if (results_.size() > 1) return;
  if (results_[0] >= inputs_ && results_[0] != inputs_ + static_cast<int>(steps_.size()) - 1)
    throw InvalidArgumentError("The last of `ops` must be the result, or copies of it.");
  if (results_[0] < inputs_) steps_.clear();
}

Ref<FusedProgram> FusedProgram::of(KernelContext& c) {
  NodeState& state = c.state();
  std::lock_guard lock(state.mutex);
  if (!state.object) {
    std::vector<std::int64_t> results;
    if (c.op().find_attr("results")) results = c.attr<std::vector<std::int64_t>>("results");
    state.object = Ref<RefCounted>(make_ref<FusedProgram>(
        c.attr<std::vector<std::string>>("ops"), c.attr<std::vector<std::int64_t>>("operands"),
        c.num_inputs(), std::move(results)));
  }
  return Ref<FusedProgram>(static_cast<FusedProgram*>(state.object.get()));
}

BlockSource::BlockSource(const Array& input, const Shape& shape) : values_(input) {
  const std::int64_t count = input.num_elements(), all = shape.num_elements();
  if (count == all) return;
  if (count == 1) {
    kind_ = Kind::kScalar;
    return;
  }
  const int shift = shape.rank() - input.rank();
  int first = 0, last = input.rank();  // [first, last): axes that are not 1
  while (first < last && input.shape()[first] == 1) ++first;
  while (first < last && input.shape()[last - 1] == 1) --last;
  bool whole = true;  // in between every axis is there
  for (int i = first; i < last; ++i) whole = whole && input.shape()[i] == shape[i + shift];
  std::int64_t before = 1, after = 1;
  for (int i = 0; i < first + shift; ++i) before *= shape[i];
  for (int i = last + shift; i < shape.rank(); ++i) after *= shape[i];
  if (whole && after == 1) {
    kind_ = Kind::kRow;
    period_ = count;
  } else if (whole && before == 1) {
    kind_ = Kind::kColumn;
    period_ = after;
  } else {
    values_ = expand(input, shape);
  }
}

BlockSource BlockSource::given() {
  BlockSource source;
  source.kind_ = Kind::kGiven;
  return source;
}

float BlockSource::element(std::int64_t i) const {
  switch (values_.dtype()) {
    case DType::kFloat: return values_.data<float>()[i];
    case DType::kHalf: return static_cast<float>(values_.data<Half>()[i]);
    default: return static_cast<float>(values_.data<BFloat16>()[i]);
  }
}

void BlockSource::load(std::int64_t begin, std::int64_t n, float* to) const {
  if (values_.dtype() == DType::kFloat) {
    std::memcpy(to, values_.data<float>() + begin, static_cast<std::size_t>(n) * sizeof(float));
  } else if (values_.dtype() == DType::kHalf) {
    to_floats(values_.data<Half>() + begin, to, n);
  } else {
    to_floats(values_.data<BFloat16>() + begin, to, n);
  }
}

// A short row is laid out so often that any block of it lies in one piece.
std::int64_t BlockSource::scratch(std::int64_t size) const {
  switch (kind_) {
    case Kind::kFull: return values_.dtype() == DType::kFloat ? 0 : size;
    case Kind::kScalar: return 1;
    case Kind::kRow: return is_short(size) ? period_ + size : size;
    case Kind::kColumn: return size;
    case Kind::kGiven: return 0;
  }
  return size;
}

std::int64_t BlockSource::period(std::int64_t size) const {
  if (kind_ == Kind::kScalar) return 1;
  return kind_ == Kind::kRow && is_short(size) ? period_ : 0;
}

void BlockSource::prepare(float* scratch, std::int64_t size) const {
  if (kind_ == Kind::kScalar) scratch[0] = element(0);
  if (kind_ != Kind::kRow || !is_short(size)) return;
  load(0, period_, scratch);
  for (std::int64_t i = 0; i < size; ++i) scratch[period_ + i] = scratch[i];
}

void BlockSource::fetch(std::int64_t begin, std::int64_t n) const {
  constexpr std::size_t kNear = std::size_t{1} << 18;  // stays in a core's second cache
  const std::size_t size = dtype_size(values_.dtype()), all = values_.num_bytes();
  const std::size_t from = static_cast<std::size_t>(begin) * size;
  if (all <= kNear || from >= all) return;
  prefetch(static_cast<const std::byte*>(values_.raw_data()) + from,
           std::min(static_cast<std::size_t>(n) * size, all - from));
}

const float* BlockSource::block(float* scratch, std::int64_t size, std::int64_t begin,
                                std::int64_t n) const {
  switch (kind_) {
    case Kind::kFull:
      fetch(begin + n, n);
      if (values_.dtype() == DType::kFloat) return values_.data<float>() + begin;
      load(begin, n, scratch);
      return scratch;
    case Kind::kScalar: return scratch;
    case Kind::kRow: {
      const std::int64_t at = begin % period_;
      if (is_short(size)) return scratch + at;  // laid out by prepare
      const std::int64_t first = std::min(n, period_ - at);
      load(at, first, scratch);
      if (first < n) load(0, n - first, scratch + first);
      return scratch;
    }
    case Kind::kColumn: {
      std::int64_t i = 0;
      while (i < n) {
        const std::int64_t row = (begin + i) / period_;
        const std::int64_t end = std::min(n, (row + 1) * period_ - begin);
        std::fill(scratch + i, scratch + end, element(row));
        i = end;
      }
      return scratch;
    }
    case Kind::kGiven: break;
  }
  return scratch;
}

FusedRun::FusedRun(const FusedProgram& program, const std::vector<BlockSource>& sources,
                   std::int64_t size)
    : program_(program), sources_(sources), size_(size) {
  const std::size_t inputs = sources.size();
  values_.resize(inputs + program.steps().size());
  std::vector<std::int64_t> floats(values_.size(), 0);
  for (std::size_t i = 0; i < inputs; ++i) {
    values_[i].period = sources[i].period(size);
    floats[i] = sources[i].scratch(size);
  }
  for (std::size_t k = 0; k < program.steps().size(); ++k) {
    std::int64_t period = 1;
    for (const int operand : program.steps()[k].operands) {
      const std::int64_t own = value(operand).period;
      if (own == 0 || (own > 1 && period > 1 && own != period)) {
        period = 0;
        break;
      }
      period = std::max(period, own);
    }
    values_[inputs + k].period = period;
    if (period != 0) floats[inputs + k] = period == 1 ? 1 : period + size;
  }
  const std::int64_t all = std::accumulate(floats.begin(), floats.end(), program.buffers() * size);
  memory_.emplace(static_cast<std::size_t>(all) * sizeof(float));
  float* const buffers = memory_->as<float>();
  float* next = buffers + program.buffers() * size;
  for (std::size_t v = 0; v < values_.size(); ++v) {
    values_[v].memory = next;
    next += floats[v];
  }
  for (std::size_t i = 0; i < inputs; ++i) {
    sources[i].prepare(values_[i].memory, size);
    values_[i].data = values_[i].memory;
  }
  for (std::size_t k = 0; k < program.steps().size(); ++k) {
    const FusedProgram::Step& step = program.steps()[k];
    Value& result = values_[inputs + k];
    if (result.period == 0) result.memory = buffers + step.buffer * size;
    result.data = result.memory;
    if (result.period != 0) run_step(step, floats[inputs + k], result.memory, result.memory);
  }
}

// `buffer` holds what is added up of more than two operands, `out` gets the result.
void FusedRun::run_step(const FusedProgram::Step& step, std::int64_t n, float* buffer,
                        float* out) const {
  const Value& a = value(step.operands[0]);
  if (step.operands.size() == 1) return step.loops.unary(a.data, out, n, 0);
  const float* sum = a.data;
  bool is_scalar = n > 1 && a.period == 1;
  for (std::size_t i = 1; i < step.operands.size(); ++i) {
    const Value& b = value(step.operands[i]);
    float* to = i + 1 == step.operands.size() ? out : buffer;
    const bool b_scalar = n > 1 && b.period == 1;
    if (is_scalar && b_scalar) {  // a result that repeats no oftener, of operands that do
      step.loops.binary(sum, b.data, to, 1, false, false, 0);
      std::fill(to + 1, to + n, to[0]);
    } else {
      step.loops.binary(sum, b.data, to, n, is_scalar, b_scalar, 0);
    }
    sum = to;
    is_scalar = false;
  }
}

void FusedRun::find_inputs(std::int64_t begin, std::int64_t n, const float* given) {
  for (std::size_t v = 0; v < values_.size(); ++v) {
    Value& own = values_[v];
    if (own.period > 1) {
      own.data = own.memory + begin % own.period;
    } else if (own.period == 0 && v < sources_.size()) {
      own.data = sources_[v].is_given() ? given : sources_[v].block(own.memory, size_, begin, n);
    }
  }
}

const float* FusedRun::compute(std::int64_t begin, std::int64_t n, float* out, const float* given) {
  find_inputs(begin, n, given);
  const auto& steps = program_.steps();
  for (std::size_t k = 0; k < steps.size(); ++k) {
    const Value& own = values_[sources_.size() + k];
    if (own.period == 0)
      run_step(steps[k], n, own.memory, k + 1 == steps.size() ? out : own.memory);
  }
  // The result of the last step is there, unless it repeats or there is no step.
  const Value& result = value(program_.results()[0]);
  if (result.period == 1) {
    std::fill(out, out + n, result.data[0]);
    return out;
  }
  return steps.empty() || result.period != 0 ? result.data : out;
}

void FusedRun::compute(std::int64_t begin, std::int64_t n) {
  find_inputs(begin, n, nullptr);
  const auto& steps = program_.steps();
  for (std::size_t k = 0; k < steps.size(); ++k) {
    const Value& own = values_[sources_.size() + k];
    if (own.period == 0) run_step(steps[k], n, own.memory, own.memory);
  }
}

const float* FusedRun::result(std::size_t i, std::int64_t n, float* scratch) const {
  const Value& own = value(program_.results()[i]);
  if (own.period != 1) return own.data;
  std::fill(scratch, scratch + n, own.data[0]);
  return scratch;
}

void FusedRun::block(std::int64_t begin, std::int64_t n, float* out, const float* given) {
  const float* result = compute(begin, n, out, given);
  if (result != out) std::memcpy(out, result, static_cast<std::size_t>(n) * sizeof(float));
}

}  // namespace tandem::cpu
