#include "tandem/kernels/cpu/state/gradient_accumulator.h"

#include <algorithm>
#include <span>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/log.h"
#include "tandem/kernels/cpu/support/elements.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

template <class F>
void with_gradient_type(DType dtype, F&& f) {
  with_type<Half, float, double>(dtype, f);
}

Array copy_of(const Array& from) {
  Array copy(from.dtype(), from.shape());
  with_gradient_type(from.dtype(), [&]<class T>() {
    copy_elements(copy.data<T>(), from.data<T>(), from.num_elements());
  });
  return copy;
}

template <class T>
void add_elements(const T* from, T* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(widen(to[i]) + widen(from[i]));
}

// The count is rounded to T first, as the elements are.
template <class T>
void divide_elements(T* x, std::int64_t n, std::int64_t count) {
  const auto divisor = widen(static_cast<T>(static_cast<Wide<T>>(count)));
  for (std::int64_t i = 0; i < n; ++i) x[i] = static_cast<T>(widen(x[i]) / divisor);
}

[[noreturn]] void shape_mismatch(const std::string& what) {
  throw InvalidArgumentError(cat("Shape mismatch: ", what));
}

// Where a row of a sum comes from; -1: it has none on that side.
struct Source {
  std::int64_t sum;
  std::int64_t added;
};

// Both sides are taken to be sorted, as TensorFlow does: an index that is out of order is not
// found again.
std::vector<Source> merged(std::span<const std::int64_t> sum, std::span<const std::int64_t> added) {
  std::vector<Source> rows;
  rows.reserve(sum.size() + added.size());
  std::size_t i = 0, k = 0;
  while (i < sum.size() || k < added.size()) {
    const bool from_sum = k == added.size() || (i < sum.size() && sum[i] <= added[k]);
    const bool from_added = i == sum.size() || (k < added.size() && added[k] <= sum[i]);
    rows.push_back({from_sum ? static_cast<std::int64_t>(i++) : -1,
                    from_added ? static_cast<std::int64_t>(k++) : -1});
  }
  return rows;
}

std::exception_ptr take_was_cancelled() {
  return std::make_exception_ptr(CancelledError("TakeGrad operation was cancelled"));
}

}  // namespace

GradientAccumulator::GradientAccumulator(Kind kind) : kind_(std::move(kind)) {}

std::string GradientAccumulator::debug_string() const {
  return cat(kind_.type, " of ", kind_.dtype, kind_.shape);
}

std::int64_t GradientAccumulator::num_accumulated() const {
  std::lock_guard lock(mutex_);
  return count_;
}

void GradientAccumulator::set_global_step(std::int64_t step) {
  std::lock_guard lock(mutex_);
  if (step < step_) {
    log(LogLevel::kWarning,
        cat("The ", kind_.type, " goes back from step ", step_, " to step ", step, "."));
  }
  step_ = step;
}

void GradientAccumulator::apply(std::int64_t step, const Array& gradient) {
  Callbacks ready;
  {
    std::lock_guard lock(mutex_);
    if (step < step_) return;
    if (count_ > 0 && sum_.values.shape() != gradient.shape()) {
      shape_mismatch(cat("expected ", sum_.values.shape(), ", got ", gradient.shape()));
    }
    if (!kind_.shape.is_compatible(gradient.shape())) {
      shape_mismatch(cat("expected ", kind_.shape, ", got ", gradient.shape()));
    }
    add(gradient);
    ++count_;
    match(ready);
  }
  // When the lock is gone: they go on with other kernels, perhaps of this accumulator.
  for (const auto& callback : ready) callback();
}

void GradientAccumulator::apply_rows(std::int64_t step, const Array& indices, const Array& values,
                                     const Array* shape) {
  Callbacks ready;
  {
    std::lock_guard lock(mutex_);
    if (step < step_) return;
    require_rows_fit(indices, values, shape);
    add_rows(indices, values);
    ++count_;
    match(ready);
  }
  for (const auto& callback : ready) callback();
}

void GradientAccumulator::require_rows_fit(const Array& indices, const Array& values,
                                           const Array* shape) const {
  if (indices.rank() != 1) {
    throw InvalidArgumentError(
        cat("Input indices should be vector but received shape: ", indices.shape()));
  }
  if (values.rank() == 0) throw InvalidArgumentError("Values cannot be 0-dimensional.");
  if (values.shape()[0] != indices.num_elements()) {
    throw InvalidArgumentError(cat("Expected ", indices.num_elements(),
                                   " non-empty input values, got ", values.shape()[0]));
  }
  const int rank = kind_.shape.has_rank() ? kind_.shape.rank() : 0;
  if (shape != nullptr) {
    if (rank > shape->num_elements()) {
      shape_mismatch(cat("expected shape rank at least ", rank, ", got ", shape->num_elements()));
    }
    for (int i = 0; i < rank; ++i) {
      const std::int64_t size = shape->data<std::int64_t>()[i];
      if (kind_.shape.dim(i) >= 0 && kind_.shape.dim(i) != size) {
        shape_mismatch(
            cat("expected shape dim ", i, " to be ", kind_.shape.dim(i), ", got ", size));
      }
    }
  }
  if (rank > 0 && kind_.shape.dim(0) >= 0) {
    for (std::int64_t i = 0; i < indices.num_elements(); ++i) {
      const std::int64_t index = indices.data<std::int64_t>()[i];
      if (index >= kind_.shape.dim(0)) {
        shape_mismatch(cat("index of slice ", i, " exceeded limits of shape; index is ", index,
                           " exceeded ", kind_.shape.dim(0)));
      }
    }
  }
  const PartialShape& known = count_ > 0 ? PartialShape(sum_.values.shape()) : kind_.shape;
  if (count_ > 0 && known.rank() != values.rank()) {
    shape_mismatch(cat("expected values rank ", known.rank(), ", got ", values.rank()));
  }
  if (count_ == 0 && rank > values.rank()) {
    shape_mismatch(cat("expected values rank at least ", rank, ", got ", values.rank()));
  }
  for (int i = 1; known.has_rank() && i < known.rank(); ++i) {
    if (known.dim(i) >= 0 && known.dim(i) != values.shape()[i]) {
      shape_mismatch(
          cat("expected values dim ", i, " to be ", known.dim(i), ", got ", values.shape()[i]));
    }
  }
}

void GradientAccumulator::add(const Array& gradient) {
  if (count_ == 0) {
    sum_.values = copy_of(gradient);
    return;
  }
  with_gradient_type(kind_.dtype, [&]<class T>() {
    add_elements(gradient.data<T>(), sum_.values.data<T>(), gradient.num_elements());
  });
}

void GradientAccumulator::add_rows(const Array& indices, const Array& values) {
  const std::span added(indices.data<std::int64_t>(),
                        static_cast<std::size_t>(indices.num_elements()));
  if (count_ == 0) {
    sum_ = {{added.begin(), added.end()}, copy_of(values)};
    counts_.assign(added.size(), 1);
    return;
  }
  const std::vector<Source> rows = merged(sum_.indices, added);
  Shape shape = values.shape();
  shape.set_dim(0, static_cast<std::int64_t>(rows.size()));
  GradientRows sum{{}, Array(kind_.dtype, shape)};
  std::vector<std::int64_t> counts;
  const std::int64_t width = shape.product(1, shape.rank());
  with_gradient_type(kind_.dtype, [&]<class T>() {
    T* to = sum.values.data<T>();
    for (const Source& row : rows) {
      const T* added_row = row.added < 0 ? nullptr : values.data<T>() + row.added * width;
      if (row.sum < 0) {
        copy_elements(to, added_row, width);
        sum.indices.push_back(added[static_cast<std::size_t>(row.added)]);
        counts.push_back(1);
      } else {
        const auto i = static_cast<std::size_t>(row.sum);
        copy_elements(to, std::as_const(sum_.values).data<T>() + row.sum * width, width);
        if (row.added >= 0) add_elements(added_row, to, width);
        sum.indices.push_back(sum_.indices[i]);
        counts.push_back(counts_[i] + (row.added >= 0 ? 1 : 0));
      }
      to += width;
    }
  });
  sum_ = std::move(sum);
  counts_ = std::move(counts);
}

GradientRows GradientAccumulator::handoff() {
  if (kind_.mean) {
    with_gradient_type(kind_.dtype, [&]<class T>() {
      T* x = sum_.values.data<T>();
      if (!kind_.sparse) return divide_elements(x, sum_.values.num_elements(), count_);
      const Shape& shape = sum_.values.shape();
      const std::int64_t width = shape.product(1, shape.rank());
      for (const std::int64_t count : counts_) {
        divide_elements(x, width, count);
        x += width;
      }
    });
  }
  ++step_;
  count_ = 0;
  counts_.clear();
  return std::exchange(sum_, {});
}

void GradientAccumulator::take(std::int64_t count, const Cancellation* cancellation,
                               TakeDone done) {
  if (cancellation != nullptr && cancellation->cancelled()) return done(take_was_cancelled(), {});
  Callbacks ready;
  {
    std::lock_guard lock(mutex_);
    const std::uint64_t request = ++requests_;
    takes_.push_back({count, std::move(done), request});
    match(ready);
    const bool waits = !takes_.empty() && takes_.back().request == request;
    if (waits && !watch(request, cancellation, takes_.back().watch)) drop(request, ready);
  }
  for (const auto& callback : ready) callback();
}

// Serves the oldest request, and those behind it, until one has to wait.
void GradientAccumulator::match(Callbacks& ready) {
  while (!takes_.empty() && count_ >= takes_.front().count) {
    ready.push_back([done = std::move(takes_.front().done), watch = takes_.front().watch,
                     sum = handoff()]() mutable {
      watch.end();
      done(nullptr, std::move(sum));
    });
    takes_.pop_front();
  }
}

void GradientAccumulator::cancel_request(std::uint64_t request) {
  Callbacks ready;
  {
    std::lock_guard lock(mutex_);
    drop(request, ready);
  }
  for (const auto& callback : ready) callback();
}

// Called with the lock held, as the request's cancellation calls back or instead of it.
void GradientAccumulator::drop(std::uint64_t request, Callbacks& ready) {
  const auto take = std::find_if(takes_.begin(), takes_.end(),
                                 [&](const Take& waiting) { return waiting.request == request; });
  if (take != takes_.end()) {
    ready.push_back([done = std::move(take->done)] { done(take_was_cancelled(), {}); });
    takes_.erase(take);
  }
  match(ready);
}

}  // namespace tandem::cpu
