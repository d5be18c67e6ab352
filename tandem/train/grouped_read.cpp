#include "tandem/train/internal/grouped_read.h"

#include <cstdint>
#include <utility>

#include "tandem/fs/paths.h"

namespace tandem::train::internal {
namespace {

// Half of what the allocator keeps for reuse (core/host_memory.cpp): a group and what it replaces.
constexpr std::uint64_t kGroupBytes = std::uint64_t{128} << 20;

std::uint64_t bytes_of(const ObjectCheckpoint& file, const std::string& key) {
  return static_cast<std::uint64_t>(file.shape(key).num_elements()) * dtype_size(file.dtype(key));
}

}  // namespace

void read_in_groups(const ObjectCheckpoint& file, const std::string& prefix,
                    const std::vector<std::string>& keys, Check check,
                    const std::function<void(std::size_t, Tensor)>& take) {
  std::vector<std::uint64_t> sizes;
  std::uint64_t total = 0;
  for (const std::string& key : keys) {
    sizes.push_back(bytes_of(file, key));
    total += sizes.back();
  }
  const bool all_first = check == Check::kAllFirst;
  const bool in_groups = total > kGroupBytes && (!all_first || fs::is_local(prefix));
  if (in_groups && all_first) file.verify(keys);
  for (std::size_t begin = 0, end = 0; begin < keys.size(); begin = end) {
    std::uint64_t group = 0;
    for (; end < keys.size(); ++end) {
      if (in_groups && end > begin && group + sizes[end] > kGroupBytes) break;
      group += sizes[end];
    }
    const std::vector<std::string> names(keys.begin() + static_cast<std::ptrdiff_t>(begin),
                                         keys.begin() + static_cast<std::ptrdiff_t>(end));
    std::vector<Tensor> values = file.read(names);
    for (std::size_t i = begin; i < end; ++i) take(i, std::move(values[i - begin]));
  }
}

}  // namespace tandem::train::internal
