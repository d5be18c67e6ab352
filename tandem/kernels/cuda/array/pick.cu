// Elements and rows that are picked by what they hold: Where, Unique, DynamicPartition,
// DynamicStitch, TopK. Sizes that follow from elements are read back, as on TensorFlow's GPUs.

#include <vector>

#include "tandem/kernels/cuda/array/copy.h"
#include "tandem/kernels/cuda/support/prefix_sum.h"
#include "tandem/kernels/cuda/support/sort.h"
#include "tandem/kernels/cuda/support/warp.h"

namespace tandem::cuda {
namespace {

struct Axes {
  int rank = 0;
  std::int64_t sizes[kMaxAxes] = {};
};

// ---- Where ----

template <class T>
TANDEM_KERNEL flag_kernel(const T* x, std::int64_t* flags, std::int64_t n) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    flags[i] = load(x[i]) != Compute<T>(0) ? 1 : 0;
  }
}

TANDEM_KERNEL put_places_kernel(const std::int64_t* before, std::int64_t* y, std::int64_t n,
                                Axes axes) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    if (before[i + 1] == before[i]) continue;
    std::int64_t rest = i;
    for (int axis = axes.rank - 1; axis >= 0; --axis) {
      y[before[i] * axes.rank + axis] = rest % axes.sizes[axis];
      rest /= axes.sizes[axis];
    }
  }
}

// ---- Unique ----

// A number for each element's bits, zeros of both signs alike.
template <class T>
TANDEM_DEVICE std::uint64_t key_of(T value) {
  if constexpr (kIsFloating<T>) {
    if (load(value) == Compute<T>(0)) return 0;
  }
  using Bits = std::conditional_t<
      sizeof(T) == 1, std::uint8_t,
      std::conditional_t<sizeof(T) == 2, std::uint16_t,
                         std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;
  union {
    T value;
    Bits bits;
  } both = {value};
  return both.bits;
}

template <class T>
TANDEM_KERNEL unique_keys_kernel(const T* x, std::uint64_t* keys, std::int64_t* places,
                                 std::int64_t n, std::int64_t padded) {
  for (auto i = first_index<std::int64_t>(); i < padded; i += index_step<std::int64_t>()) {
    keys[i] = i < n ? key_of(x[i]) : kLastKey;
    places[i] = i;
  }
}

// first[i]: the first element that is the same as element i; flags[i]: whether that is i itself. A
// NaN is the same as none.
template <class T>
TANDEM_KERNEL first_of_same_kernel(const T* x, const std::uint64_t* keys,
                                   const std::int64_t* places, std::int64_t* first,
                                   std::int64_t* flags, std::int64_t n, std::int64_t padded) {
  for (auto p = first_index<std::int64_t>(); p < padded; p += index_step<std::int64_t>()) {
    const std::int64_t i = places[p];
    if (i >= n) continue;
    const Compute<T> value = load(x[i]);
    std::int64_t q = p;
    if (value == value) {
      // The run's beginning, by halves: keys ascend.
      std::int64_t low = 0, high = p;
      while (low < high) {
        const std::int64_t middle = (low + high) / 2;
        if (keys[middle] < keys[p]) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      q = low;
    }
    first[i] = places[q];
    flags[i] = places[q] == i ? 1 : 0;
  }
}

template <class T, class Index>
TANDEM_KERNEL put_unique_kernel(const T* x, const std::int64_t* first, const std::int64_t* before,
                                T* y, Index* places, std::int64_t n) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const std::int64_t rank = before[first[i]];
    places[i] = static_cast<Index>(rank);
    if (first[i] == i) y[rank] = x[i];
  }
}

template <class Index>
TANDEM_KERNEL count_unique_kernel(const Index* places, Index* counts, std::int64_t n,
                                  std::int64_t kinds) {
  for (auto k = first_index<std::int64_t>(); k < kinds; k += index_step<std::int64_t>()) {
    Index count = 0;
    for (std::int64_t i = 0; i < n; ++i) count += static_cast<std::int64_t>(places[i]) == k ? 1 : 0;
    counts[k] = count;
  }
}

void unique(KernelCall& call) {
  const TensorView x = call.input(0);
  if (x.rank() != 1) refuse("unique expects a 1D vector.");
  const std::int64_t n = x.count;
  const TensorView places = call.allocate_output(1, x.sizes);
  const bool counted = call.num_outputs() > 2;
  if (n == 0) {
    call.allocate_output(0, {0});
    if (counted) call.allocate_output(2, {0});
    return;
  }
  const std::size_t pairs_bytes = sort_bytes(n);
  auto* const memory = static_cast<std::byte*>(
      call.scratch(pairs_bytes + static_cast<std::size_t>(2 * n + 1) * sizeof(std::int64_t)));
  const SortPairs pairs = sort_pairs_at(memory, n);
  auto* const first = reinterpret_cast<std::int64_t*>(memory + pairs_bytes);
  std::int64_t* const flags = first + n;
  const bool known = visit_all(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    TANDEM_LAUNCH(unique_keys_kernel<T>, shape_for(pairs.size), 0, x.as<T>(), pairs.keys,
                  pairs.values, n, pairs.size);
    sort(pairs);
    TANDEM_LAUNCH(first_of_same_kernel<T>, shape_for(pairs.size), 0, x.as<T>(), pairs.keys,
                  pairs.values, first, flags, n, pairs.size);
    prefix_sum(flags, n);
    std::int64_t kinds = 0;
    call.read_back(&kinds, flags + n, sizeof(kinds));
    const TensorView y = call.allocate_output(0, {kinds});
    visit_index(places.type, [&](auto index) {
      using Index = typename decltype(index)::type;
      TANDEM_LAUNCH((put_unique_kernel<T, Index>), shape_for(n), 0, x.as<T>(), first, flags,
                    y.as<T>(), places.as<Index>(), n);
      if (!counted) return;
      const TensorView counts = call.allocate_output(2, {kinds});
      TANDEM_LAUNCH(count_unique_kernel<Index>, shape_for(kinds), 0, places.as<Index>(),
                    counts.as<Index>(), n, kinds);
    });
  });
  if (!known) no_kernel_for(x.type);
}

// ---- TopK ----

// A block for each row finds its k largest one after the other; of equal ones the first.
template <class T, class Index>
TANDEM_KERNEL top_kernel(const T* x, T* y, Index* places, std::int64_t rows, std::int64_t n,
                         std::int64_t k) {
  using C = Compute<T>;
  TANDEM_SHARED(C, best_values, 32);
  TANDEM_SHARED(std::int64_t, best_places, 32);
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* from = x + row * n;
    C last = C(0);
    std::int64_t last_place = -1;
    for (std::int64_t rank = 0; rank < k; ++rank) {
      C value = C(0);
      std::int64_t place = n;
      for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        const C one = load(from[i]);
        const bool taken = last_place >= 0 && (last < one || (one == last && i <= last_place));
        if (!taken && (place == n || value < one)) {
          value = one;
          place = i;
        }
      }
      // Each warp's best, then the best of those.
      const auto take_better = [&](C other, std::int64_t other_place) {
        const bool better = other_place < n && (place == n || value < other ||
                                                (!(other < value) && other_place < place));
        if (better) {
          value = other;
          place = other_place;
        }
      };
      for (unsigned d = 16; d > 0; d /= 2) {
        const C other = warp_shuffle_xor(value, d);
        take_better(other, warp_shuffle_xor(place, d));
      }
      const unsigned lane = threadIdx.x % 32, warps = blockDim.x / 32;
      if (lane == 0) {
        best_values[threadIdx.x / 32] = value;
        best_places[threadIdx.x / 32] = place;
      }
      __syncthreads();
      for (unsigned w = 0; w < warps; ++w) take_better(best_values[w], best_places[w]);
      if (threadIdx.x == 0) {
        y[row * k + rank] = store<T>(value);
        places[row * k + rank] = static_cast<Index>(place);
      }
      last = value;
      last_place = place;
      __syncthreads();
    }
  }
}

void top_k(KernelCall& call, std::int64_t k) {
  const TensorView x = call.input(0);
  if (x.rank() < 1) refuse("input must be >= 1-D");
  if (k < 0) refuse("Need k >= 0, got " + std::to_string(k));
  const std::int64_t n = x.sizes.back();
  if (n < k) {
    refuse("input must have at least k columns. Had " + std::to_string(n) + ", needed " +
           std::to_string(k));
  }
  Sizes sizes = x.sizes;
  sizes.back() = k;
  const TensorView y = call.allocate_output(0, sizes), places = call.allocate_output(1, sizes);
  if (y.count == 0) return;
  const Shape shape = rows_shape(x.count / n, n > 128 ? default_block() : 32);
  if (!visit_numbers(x.type, [&](auto tag) {
        using T = typename decltype(tag)::type;
        const auto run = [&](auto index) {
          using Index = typename decltype(index)::type;
          TANDEM_LAUNCH((top_kernel<T, Index>), shape, 0, x.as<T>(), y.as<T>(), places.as<Index>(),
                        x.count / n, n, k);
        };
        if (places.type == Type::kInt16) return run(Tag<std::int16_t>());
        visit_index(places.type, run);
      })) {
    no_kernel_for(x.type);
  }
}

// ---- Rows by number ----

template <class T>
TANDEM_KERNEL take_rows_kernel(const T* x, const std::int64_t* rows, T* y, std::int64_t n,
                               std::int64_t inner) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    y[i] = x[rows[i / inner] * inner + i % inner];
  }
}

TANDEM_KERNEL partition_keys_kernel(const std::int32_t* parts, std::uint64_t* keys,
                                    std::int64_t* places, std::int64_t n, std::int64_t padded) {
  for (auto i = first_index<std::int64_t>(); i < padded; i += index_step<std::int64_t>()) {
    keys[i] = i < n ? static_cast<std::uint64_t>(parts[i]) : kLastKey;
    places[i] = i;
  }
}

template <class T>
TANDEM_KERNEL put_rows_kernel(const T* x, const std::int32_t* rows, T* y, std::int64_t n,
                              std::int64_t inner, std::int64_t limit) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const std::int64_t row = rows[i / inner];
    if (row >= 0 && row < limit) y[row * inner + i % inner] = x[i];
  }
}

bool starts_with(const Sizes& whole, const Sizes& front) {
  return front.size() <= whole.size() && std::equal(front.begin(), front.end(), whole.begin());
}

}  // namespace

void array_where(KernelCall& call) {
  const TensorView x = call.input(0);
  if (x.rank() < 1 || x.rank() > kMaxAxes) {
    refuse("WhereOp : Unhandled input dimensions: " + std::to_string(x.rank()));
  }
  const std::int64_t n = x.count;
  Axes axes;
  axes.rank = x.rank();
  for (int i = 0; i < axes.rank; ++i) axes.sizes[i] = x.sizes[static_cast<std::size_t>(i)];
  std::int64_t found = 0;
  std::int64_t* flags = nullptr;
  if (n > 0) {
    flags = static_cast<std::int64_t*>(
        call.scratch(static_cast<std::size_t>(n + 1) * sizeof(std::int64_t)));
    if (!visit_all(x.type, [&](auto tag) {
          using T = typename decltype(tag)::type;
          TANDEM_LAUNCH(flag_kernel<T>, shape_for(n), 0, x.as<T>(), flags, n);
        })) {
      no_kernel_for(x.type);
    }
    prefix_sum(flags, n);
    call.read_back(&found, flags + n, sizeof(found));
  }
  const TensorView y = call.allocate_output(0, {found, x.rank()});
  if (y.count == 0) return;
  TANDEM_LAUNCH(put_places_kernel, shape_for(n), 0, flags, y.as<std::int64_t>(), n, axes);
}

void array_unique(KernelCall& call) { unique(call); }

void array_top_k(KernelCall& call) { top_k(call, call.attr_int("k")); }
void array_top_k_v2(KernelCall& call) { top_k(call, call.input(1).host_scalar("k")); }

void array_dynamic_partition(KernelCall& call) {
  const TensorView x = call.input(0), parts = call.input(1);
  if (!starts_with(x.sizes, parts.sizes)) refuse("data.shape must start with partitions.shape");
  const std::int64_t n = parts.count, kinds = call.num_outputs();
  std::vector<std::int64_t> counts(static_cast<std::size_t>(kinds));
  for (const std::int64_t part : call.read_integers(parts)) {
    if (part < 0 || part >= kinds) {
      refuse("partitions: " + std::to_string(part) + " is not in [0, " + std::to_string(kinds) +
             ")");
    }
    ++counts[static_cast<std::size_t>(part)];
  }
  Sizes sizes(x.sizes.begin() + parts.rank(), x.sizes.end());
  const std::int64_t inner = product(sizes);
  sizes.insert(sizes.begin(), 0);
  SortPairs pairs;
  if (n > 0) {
    pairs = sort_pairs_at(call.scratch(sort_bytes(n)), n);
    TANDEM_LAUNCH(partition_keys_kernel, shape_for(pairs.size), 0, parts.as<std::int32_t>(),
                  pairs.keys, pairs.values, n, pairs.size);
    sort(pairs);
  }
  std::int64_t first = 0;
  for (int k = 0; k < kinds; ++k) {
    sizes[0] = counts[static_cast<std::size_t>(k)];
    const TensorView y = call.allocate_output(k, sizes);
    if (y.count > 0) {
      visit_size(y.type, [&](auto tag) {
        using T = typename decltype(tag)::type;
        TANDEM_LAUNCH(take_rows_kernel<T>, shape_for(y.count), 0, x.as<T>(), pairs.values + first,
                      y.as<T>(), y.count, inner);
      });
    }
    first += sizes[0];
  }
}

// The indices lie in host memory; the last of several for one row stays, as launches are in order.
void array_dynamic_stitch(KernelCall& call) {
  const int n = call.num_inputs() / 2;
  std::int64_t rows = 0;
  Sizes rest;
  for (int k = 0; k < n; ++k) {
    const TensorView indices = call.input(k), data = call.input(n + k);
    if (!starts_with(data.sizes, indices.sizes)) {
      refuse("data[" + std::to_string(k) + "].shape does not start with indices' shape");
    }
    const Sizes after(data.sizes.begin() + indices.rank(), data.sizes.end());
    if (k == 0) rest = after;
    if (after != rest) refuse("the rows of data[" + std::to_string(k) + "] have another shape");
    for (std::int64_t i = 0; i < indices.count; ++i) {
      const std::int32_t index = indices.as<std::int32_t>()[i];
      if (index < 0) refuse("indices[" + std::to_string(k) + "] has a negative index");
      rows = std::max<std::int64_t>(rows, std::int64_t{index} + 1);
    }
  }
  const std::int64_t inner = product(rest);
  rest.insert(rest.begin(), rows);
  const TensorView y = call.allocate_output(0, rest);
  if (y.count == 0) return;
  fill_zeros(y);
  for (int k = 0; k < n; ++k) {
    const TensorView indices = call.input(k), data = call.input(n + k);
    std::vector<std::int32_t> own(indices.as<std::int32_t>(),
                                  indices.as<std::int32_t>() + indices.count);
    // Of several in one tensor the last stays.
    std::vector<std::int64_t> last(static_cast<std::size_t>(rows), -1);
    for (std::size_t i = 0; i < own.size(); ++i) {
      last[static_cast<std::size_t>(own[i])] = static_cast<std::int64_t>(i);
    }
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (last[static_cast<std::size_t>(own[i])] != static_cast<std::int64_t>(i)) own[i] = -1;
    }
    if (own.empty() || inner == 0) continue;
    auto* const on_device =
        static_cast<std::int32_t*>(call.scratch(own.size() * sizeof(std::int32_t)));
    call.upload(on_device, own.data(), own.size() * sizeof(std::int32_t));
    visit_size(y.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      TANDEM_LAUNCH(put_rows_kernel<T>, shape_for(data.count), 0, data.as<T>(), on_device,
                    y.as<T>(), data.count, inner, rows);
    });
  }
}

}  // namespace tandem::cuda
