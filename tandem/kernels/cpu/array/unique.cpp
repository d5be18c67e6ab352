// Elements that differ: Unique, UniqueWithCounts.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/array/put_indices.h"
#include "tandem/kernels/cpu/support/arithmetic.h"
#include "tandem/kernels/cpu/support/elements.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

// Elements are compared by keys of 64 bits, this many at a time.
constexpr std::int64_t kRun = 512;

// Equal numbers have equal keys and others have not; a NaN is equal to nothing. Texts that differ
// may have the same key.
using Keys = void (*)(const void* x, std::int64_t begin, std::int64_t n, std::uint64_t* keys);

template <class T>
void keys_of(const void* x, std::int64_t begin, std::int64_t n, std::uint64_t* keys) {
  const T* from = static_cast<const T*>(x) + begin;
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<T, std::string>) {
      keys[i] = std::hash<std::string>()(from[i]);
    } else if constexpr (std::is_integral_v<T>) {
      keys[i] = static_cast<std::uint64_t>(from[i]);
    } else {
      const auto value = static_cast<double>(widen(from[i]));
      keys[i] = value == 0 ? 0 : std::bit_cast<std::uint64_t>(value);  // of both signs
    }
  }
}

Keys keys_for(DType dtype) {
  if (dtype == DType::kBool) return keys_of<std::uint8_t>;
  if (dtype == DType::kString) return keys_of<std::string>;
  Keys found = nullptr;
  with_real(dtype, [&]<class T>() { found = keys_of<T>; });
  return found;
}

// The different elements of a vector, numbered as they come.
class Distinct {
 public:
  explicit Distinct(const Array& x)
      : text_(x.dtype() == DType::kString ? x.data<std::string>() : nullptr),
        floating_(is_floating(x.dtype())),
        slots_(64) {}

  // The number of element i.
  std::int64_t number_of(std::uint64_t key, std::int64_t i) {
    if (floating_ && key << 1 > kInfinity << 1) return add(i);  // NaN
    for (std::size_t at = home(key);; at = (at + 1) & (slots_.size() - 1)) {
      const Slot slot = slots_[at];
      if (slot.number < 0) {
        slots_[at] = {key, static_cast<std::int64_t>(firsts.size())};
        if (2 * ++used_ > slots_.size()) grow();
        return add(i);
      }
      if (slot.key == key && (text_ == nullptr || text_[i] == text_[first(slot)])) {
        return slot.number;
      }
    }
  }

  std::vector<std::int64_t> firsts;  // where each comes first

 private:
  static constexpr std::uint64_t kInfinity = 0x7ff0'0000'0000'0000;

  struct Slot {
    std::uint64_t key = 0;
    std::int64_t number = -1;
  };

  std::int64_t add(std::int64_t i) {
    firsts.push_back(i);
    return static_cast<std::int64_t>(firsts.size()) - 1;
  }
  std::int64_t first(const Slot& slot) const {
    return firsts[static_cast<std::size_t>(slot.number)];
  }
  // Where to look first: all bits of the key count.
  std::size_t home(std::uint64_t key) const {
    key = (key ^ key >> 32) * 0x9e37'79b9'7f4a'7c15;
    return static_cast<std::size_t>(key ^ key >> 32) & (slots_.size() - 1);
  }
  void grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.number < 0) continue;
      std::size_t at = home(slot.key);
      while (slots_[at].number >= 0) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = slot;
    }
  }

  const std::string* text_;
  bool floating_;
  std::size_t used_ = 0;
  std::vector<Slot> slots_;  // a power of two of them, at most half of them in use
};

void unique(KernelContext& c) {
  const Array& x = c.input(0);
  if (x.rank() != 1) throw InvalidArgumentError("unique expects a 1D vector.");
  const std::int64_t n = x.num_elements();
  if (c.output_dtype(1) == DType::kInt32 && n > INT32_MAX) {
    throw InvalidArgumentError(
        cat("unique does not support input of ", n, " elements with out_idx int32: use int64."));
  }
  const Keys keys_from = keys_for(x.dtype());
  Array& idx = c.allocate_output(1, x.shape());
  const bool counted = c.num_outputs() > 2;
  Distinct found(x);
  std::vector<std::int64_t> counts;
  for (std::int64_t begin = 0; begin < n; begin += kRun) {
    const std::int64_t run = std::min(kRun, n - begin);
    std::uint64_t keys[kRun];
    std::int64_t numbers[kRun];
    keys_from(x.raw_data(), begin, run, keys);
    for (std::int64_t i = 0; i < run; ++i) numbers[i] = found.number_of(keys[i], begin + i);
    put_indices(idx, begin, numbers, run);
    if (!counted) continue;
    counts.resize(found.firsts.size());
    for (std::int64_t i = 0; i < run; ++i) ++counts[static_cast<std::size_t>(numbers[i])];
  }
  const auto many = static_cast<std::int64_t>(found.firsts.size());
  Array& y = c.allocate_output(0, Shape{many});
  with_element(x.dtype(), [&]<class T>() {
    const T* from = static_cast<const T*>(x.raw_data());
    T* to = static_cast<T*>(y.raw_data());
    for (const std::int64_t first : found.firsts) *to++ = from[first];
  });
  if (counted) put_indices(c.allocate_output(2, Shape{many}), 0, counts.data(), many);
}

const KernelRegistration kUnique{{.op = "Unique", .run = unique}};
const KernelRegistration kUniqueWithCounts{{.op = "UniqueWithCounts", .run = unique}};

}  // namespace
}  // namespace tandem::cpu
