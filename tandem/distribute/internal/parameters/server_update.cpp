#include "tandem/distribute/internal/parameters/server_update.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <type_traits>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/flush_denormals.h"

// Before a loop of which each round reads and writes its own elements alone. Old and new values are
// mostly in the same memory, which the compiler would take for a reason not to use vectors.
#if defined(__clang__)
#define TANDEM_ELEMENTS_ARE_APART _Pragma("clang loop vectorize(assume_safety)")
#else
#define TANDEM_ELEMENTS_ARE_APART _Pragma("GCC ivdep")
#endif

namespace tandem::distribute {

std::size_t num_slots(const proto::OptimizerSpec& optimizer) {
  if (optimizer.name == "adam") return 2;
  return optimizer.name == "sgd" ? 0 : 1;
}

namespace {

double or_default(double value, double standard) { return value != 0 ? value : standard; }

// Memory to write a new value of `old` to: its own where nothing else holds it.
Array target_of(const Array& old) {
  return old.writable_in_place() ? old : Array(old.dtype(), old.shape());
}

// Integers wrap around, as tensors' do.
template <class T>
T wrapping_sum(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a + b;
  } else {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  }
}

template <class T>
void update(Parameter& parameter, const std::vector<Array>& gradients,
            const proto::OptimizerSpec& optimizer, std::int64_t step) {
  const auto size = static_cast<std::size_t>(parameter.value.num_elements());
  Array mean = gradients.front();
  if (gradients.size() > 1) {
    mean = gradients.front().clone();
    T* sum = mean.data<T>();
    for (std::size_t g = 1; g < gradients.size(); ++g) {
      const T* more = gradients[g].data<T>();
      TANDEM_ELEMENTS_ARE_APART
      for (std::size_t i = 0; i < size; ++i) sum[i] += more[i];
    }
    const T scale = T(1) / static_cast<T>(gradients.size());
    TANDEM_ELEMENTS_ARE_APART
    for (std::size_t i = 0; i < size; ++i) sum[i] *= scale;
  }
  const T* g = mean.data<T>();
  const T rate = static_cast<T>(optimizer.learning_rate);
  Array value = target_of(parameter.value);
  const T* from = parameter.value.data<T>();
  T* to = value.data<T>();
  std::vector<Array> slots;
  for (const Array& slot : parameter.slots) slots.push_back(target_of(slot));
  const auto old_slot = [&](std::size_t s) {
    return static_cast<const T*>(parameter.slots[s].data<T>());
  };
  if (optimizer.name == "sgd") {
    TANDEM_ELEMENTS_ARE_APART
    for (std::size_t i = 0; i < size; ++i) to[i] = from[i] - rate * g[i];
  } else if (optimizer.name == "momentum") {
    const T momentum = static_cast<T>(or_default(optimizer.momentum, 0.9));
    const T* velocity = old_slot(0);
    T* next = slots[0].data<T>();
    TANDEM_ELEMENTS_ARE_APART
    for (std::size_t i = 0; i < size; ++i) {
      next[i] = momentum * velocity[i] - rate * g[i];
      to[i] = from[i] + next[i];
    }
  } else if (optimizer.name == "adagrad") {
    const T epsilon = static_cast<T>(or_default(optimizer.epsilon, 1e-7));
    const T* sum = old_slot(0);
    T* next = slots[0].data<T>();
    TANDEM_ELEMENTS_ARE_APART
    for (std::size_t i = 0; i < size; ++i) {
      next[i] = sum[i] + g[i] * g[i];
      to[i] = from[i] - rate * g[i] / std::sqrt(next[i] + epsilon);
    }
  } else {
    const double b1 = or_default(optimizer.beta_1, 0.9), b2 = or_default(optimizer.beta_2, 0.999);
    const T epsilon = static_cast<T>(or_default(optimizer.epsilon, 1e-7));
    const auto t = static_cast<double>(step);
    const T alpha = static_cast<T>(optimizer.learning_rate * std::sqrt(1 - std::pow(b2, t)) /
                                   (1 - std::pow(b1, t)));
    const T keep1 = static_cast<T>(1 - b1), keep2 = static_cast<T>(1 - b2);
    const T *m = old_slot(0), *v = old_slot(1);
    T *next_m = slots[0].data<T>(), *next_v = slots[1].data<T>();
    TANDEM_ELEMENTS_ARE_APART
    for (std::size_t i = 0; i < size; ++i) {
      next_m[i] = m[i] + (g[i] - m[i]) * keep1;
      next_v[i] = v[i] + (g[i] * g[i] - v[i]) * keep2;
      to[i] = from[i] - alpha * next_m[i] / (std::sqrt(next_v[i]) + epsilon);
    }
  }
  parameter.value = std::move(value);
  parameter.slots = std::move(slots);
}

// The gradients in the parameter's shape.
template <class T>
Array all_rows(const Parameter& parameter, const Gradients& gradients) {
  if (!gradients.index.valid()) return gradients.value;
  Array all = Array::zeros(parameter.value.dtype(), parameter.value.shape());
  const std::int64_t size =
      gradients.value.num_elements() / std::max<std::int64_t>(gradients.index.num_elements(), 1);
  const T* from = gradients.value.data<T>();
  for (const std::int64_t row : gradients.index.values<std::int64_t>()) {
    T* to = all.data<T>() + row * size;
    for (std::int64_t i = 0; i < size; ++i) to[i] += *from++;
  }
  return all;
}

// What other calls hold is copied first.
template <class T>
T* own(Array& array) {
  if (!array.writable_in_place()) array = array.clone();
  return array.data<T>();
}

// The rows of a step come in ascending order, each once.
bool is_ascending(const Array& index) {
  const auto rows = index.values<std::int64_t>();
  return std::adjacent_find(rows.begin(), rows.end(), std::greater_equal<>()) == rows.end();
}

// The sums of several gradients by row.
template <class T>
Gradients sum_of_rows(const std::vector<Gradients>& gradients, std::int64_t size) {
  std::map<std::int64_t, std::vector<T>> sums;
  for (const Gradients& one : gradients) {
    const T* from = one.value.data<T>();
    for (const std::int64_t row : one.index.values<std::int64_t>()) {
      std::vector<T>& sum = sums[row];
      sum.resize(static_cast<std::size_t>(size), T(0));
      for (T& element : sum) element += *from++;
    }
  }
  const auto count = static_cast<std::int64_t>(sums.size());
  Gradients sum{Array(gradients.front().value.dtype(), Shape{count, size}),
                Array(DType::kInt64, Shape{count})};
  T* values = sum.value.data<T>();
  auto* rows = sum.index.data<std::int64_t>();
  for (const auto& [row, elements] : sums) {
    *rows++ = row;
    values = std::copy(elements.begin(), elements.end(), values);
  }
  return sum;
}

// Rows that have gradients, by an optimizer that leaves the others as they are.
template <class T>
void update_rows(Parameter& parameter, const std::vector<Gradients>& gradients,
                 const proto::OptimizerSpec& optimizer) {
  const std::int64_t size =
      parameter.value.num_elements() / std::max<std::int64_t>(parameter.value.dim(0), 1);
  const Gradients sum = gradients.size() == 1 && is_ascending(gradients.front().index)
                            ? gradients.front()
                            : sum_of_rows<T>(gradients, size);
  const T scale = T(1) / static_cast<T>(gradients.size());
  const T rate = static_cast<T>(optimizer.learning_rate);
  const T epsilon = static_cast<T>(or_default(optimizer.epsilon, 1e-7));
  T* values = own<T>(parameter.value);
  T* squares = optimizer.name == "adagrad" ? own<T>(parameter.slots[0]) : nullptr;
  const T* from = sum.value.data<T>();
  for (const std::int64_t row : sum.index.values<std::int64_t>()) {
    T* value = values + row * size;
    if (squares) {
      T* square = squares + row * size;
      TANDEM_ELEMENTS_ARE_APART
      for (std::int64_t i = 0; i < size; ++i) {
        const T g = from[i] * scale;
        square[i] += g * g;
        value[i] -= rate * g / std::sqrt(square[i] + epsilon);
      }
    } else {
      TANDEM_ELEMENTS_ARE_APART
      for (std::int64_t i = 0; i < size; ++i) value[i] -= rate * (from[i] * scale);
    }
    from += size;
  }
}

template <class T>
void apply_as(Parameter& parameter, const std::vector<Gradients>& gradients,
              const proto::OptimizerSpec& optimizer, std::int64_t step) {
  const bool leaves_others = optimizer.name == "sgd" || optimizer.name == "adagrad";
  const bool sparse = std::all_of(gradients.begin(), gradients.end(),
                                  [](const Gradients& one) { return one.index.valid(); });
  if (sparse && leaves_others) return update_rows<T>(parameter, gradients, optimizer);
  std::vector<Array> dense;
  for (const Gradients& one : gradients) dense.push_back(all_rows<T>(parameter, one));
  update<T>(parameter, dense, optimizer, step);
}

template <class T>
void add_changes(Parameter& parameter, const std::vector<VariableChange>& changes) {
  const auto size = static_cast<std::size_t>(parameter.value.num_elements());
  const T scale = std::is_floating_point_v<T> ? T(1) / static_cast<T>(changes.size()) : T(1);
  Array value = target_of(parameter.value);
  const T* from = parameter.value.data<T>();
  T* to = value.data<T>();
  for (std::size_t i = 0; i < size; ++i) {
    T sum = changes.front().value.data<T>()[i];
    for (std::size_t c = 1; c < changes.size(); ++c)
      sum = wrapping_sum(sum, changes[c].value.data<T>()[i]);
    to[i] = wrapping_sum(from[i], static_cast<T>(sum * scale));
  }
  parameter.value = std::move(value);
}

void add_changes_of(DType dtype, Parameter& parameter, const std::vector<VariableChange>& changes) {
  switch (dtype) {
    case DType::kFloat: return add_changes<float>(parameter, changes);
    case DType::kDouble: return add_changes<double>(parameter, changes);
    case DType::kInt32: return add_changes<std::int32_t>(parameter, changes);
    case DType::kInt64: return add_changes<std::int64_t>(parameter, changes);
    case DType::kUint32: return add_changes<std::uint32_t>(parameter, changes);
    case DType::kUint64: return add_changes<std::uint64_t>(parameter, changes);
    default: throw InternalError(cat("A server cannot add values of ", dtype, "."));
  }
}

}  // namespace

bool can_be_added(DType dtype) {
  switch (dtype) {
    case DType::kFloat:
    case DType::kDouble:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kUint32:
    case DType::kUint64: return true;
    default: return false;
  }
}

void apply_changes(Parameter& parameter, const std::vector<VariableChange>& changes) {
  std::vector<VariableChange> added;
  for (const VariableChange& change : changes) {
    if (change.adds) {
      added.push_back(change);
    } else {
      parameter.value = change.value.clone();
      added.clear();
    }
  }
  if (!added.empty()) add_changes_of(parameter.value.dtype(), parameter, added);
}

bool has_slots(const Parameter& parameter, const proto::OptimizerSpec& optimizer) {
  const DType dtype = parameter.value.dtype();
  return (dtype == DType::kFloat || dtype == DType::kDouble) &&
         parameter.slots.size() == num_slots(optimizer);
}

void check_optimizer(const proto::OptimizerSpec& optimizer) {
  for (const char* known : {"sgd", "momentum", "adagrad", "adam"}) {
    if (optimizer.name == known) return;
  }
  throw InvalidArgumentError(cat("Parameter servers have no optimizer '", optimizer.name,
                                 "'; they have sgd, momentum, adagrad and adam."));
}

void add_slots(Parameter& parameter, const proto::OptimizerSpec& optimizer) {
  const DType dtype = parameter.value.dtype();
  if (dtype != DType::kFloat && dtype != DType::kDouble) {
    throw InvalidArgumentError(
        cat("Parameter servers hold float and double variables, not ", dtype, "."));
  }
  for (std::size_t s = 0; s < num_slots(optimizer); ++s) {
    parameter.slots.push_back(Array::zeros(dtype, parameter.value.shape()));
    if (optimizer.name != "adagrad") continue;
    Array& sum = parameter.slots.back();  // Keras begins with 0.1
    for (std::int64_t i = 0; i < sum.num_elements(); ++i) {
      if (dtype == DType::kFloat) {
        sum.data<float>()[i] = 0.1f;
      } else {
        sum.data<double>()[i] = 0.1;
      }
    }
  }
}

void apply_gradients(Parameter& parameter, const std::vector<Gradients>& gradients,
                     const proto::OptimizerSpec& optimizer, std::int64_t step) {
  const ScopedFlushDenormals flush;
  if (parameter.value.dtype() == DType::kFloat) {
    apply_as<float>(parameter, gradients, optimizer, step);
  } else {
    apply_as<double>(parameter, gradients, optimizer, step);
  }
}

}  // namespace tandem::distribute
