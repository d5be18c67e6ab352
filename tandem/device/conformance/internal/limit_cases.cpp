#include <cmath>
#include <cstdlib>
#include <vector>

#include "tandem/device/conformance/internal/cases.h"

namespace tandem::conformance {
namespace {

// All byte counts that a text names: "4194304 bytes", "4 MiB", "4.00MiB".
std::vector<double> sizes_in(const std::string& text) {
  std::vector<double> found;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] < '0' || text[i] > '9') {
      ++i;
      continue;
    }
    char* end = nullptr;
    const double number = std::strtod(text.c_str() + i, &end);
    i = static_cast<std::size_t>(end - text.c_str());
    std::string unit = text.substr(i, 4);
    if (unit.starts_with(" ")) unit.erase(0, 1);
    double factor = 1;
    if (unit.starts_with("KiB")) factor = 1024.0;
    if (unit.starts_with("MiB")) factor = 1024.0 * 1024;
    if (unit.starts_with("GiB")) factor = 1024.0 * 1024 * 1024;
    found.push_back(number * factor);
  }
  return found;
}

void expect_named(const std::string& text, std::size_t bytes, const char* what) {
  for (double size : sizes_in(text)) {
    if (std::abs(size - static_cast<double>(bytes)) <= 0.01 * static_cast<double>(bytes)) return;
  }
  fail("the text does not name the ", what, " of ", bytes, " bytes: ", text);
}

void exact(const Lab& lab) {
  const std::size_t limit = lab.options().memory_limit;
  const auto device = lab.make_limited(limit);
  Allocator& allocator = device->allocator();
  expect(allocator.stats().limit == limit, "stats name a limit of ", allocator.stats().limit,
         ", not ", limit);
  expect_code(thrown_by("an allocation beyond the limit", [&] { allocator.allocate(limit + 1); }),
              Code::kResourceExhausted, "an allocation beyond the limit");
  std::vector<Ref<Buffer>> quarters;
  for (int i = 0; i < 4; ++i) quarters.push_back(allocator.allocate(limit / 4));
  expect(allocator.stats().current == limit, "at the limit ", allocator.stats().current,
         " bytes are in use, not ", limit);
  expect_code(thrown_by("one byte more than the limit", [&] { allocator.allocate(1); }),
              Code::kResourceExhausted, "one byte more than the limit");
  quarters[2] = nullptr;
  quarters[2] = allocator.allocate(limit / 4);
  quarters.clear();
  allocator.allocate(limit);
  expect(allocator.stats().peak == limit, "the peak is ", allocator.stats().peak, ", not ", limit);
}

void text(const Lab& lab) {
  const std::size_t limit = lab.options().memory_limit;
  const auto device = lab.make_limited(limit);
  Ref<Buffer> held;
  {
    const AllocationScope scope("holder_of_the_half");
    held = device->allocator().allocate(limit / 2);
  }
  const auto error = thrown_by("an allocation beyond the limit",
                               [&] { device->allocator().allocate(limit / 4 * 3); });
  expect_code(error, Code::kResourceExhausted, "an allocation beyond the limit");
  const std::string message = message_of(error);
  expect_named(message, limit / 4 * 3, "request");
  expect_named(message, limit, "limit");
  expect(message.find("holder_of_the_half") != std::string::npos,
         "the text does not name the largest holder: ", message);
}

void preallocated(const Lab& lab) {
  const std::size_t limit = lab.options().memory_limit;
  const auto device = lab.make(lab.physical(), {.memory_limit = limit, .memory_growth = false}, 0);
  device->allocator().allocate(limit);
  const Ref<Buffer> half = device->allocator().allocate(limit / 2);
  write(*device, half, pattern(limit / 2, 5));
  expect_bytes(read(*device, half, limit / 2), pattern(limit / 2, 5), "preallocated memory");
}

void logical_devices_are_apart(const Lab& lab) {
  const std::size_t limit = lab.options().memory_limit / 2;
  const auto first = lab.make_limited(limit, 0);
  const auto second = lab.make_limited(limit, 1);
  const Ref<Buffer> all_of_first = first->allocator().allocate(limit);
  expect(second->allocator().stats().current == 0, "one logical device counts another's memory");
  const Ref<Buffer> all_of_second = second->allocator().allocate(limit);
  write(*first, all_of_first, pattern(limit, 1));
  write(*second, all_of_second, pattern(limit, 2));
  expect_bytes(read(*first, all_of_first, limit), pattern(limit, 1), "the first device");
  expect_bytes(read(*second, all_of_second, limit), pattern(limit, 2), "the second device");
  expect_code(thrown_by("one byte more", [&] { first->allocator().allocate(1); }),
              Code::kResourceExhausted, "one byte more");
}

// Two logical devices without limits of their own have together what the physical device has.
void share_physical_memory(const Lab& lab) {
  const std::size_t total = lab.backend().properties(lab.physical()).memory_bytes;
  expect(total != 0, "the physical device names no size of its memory");
  expect(total <= std::size_t{64} << 20,
         "the physical device has more memory than the case would like to fill");
  const auto first = lab.make(0);
  const auto second = lab.make(1);
  const std::size_t piece = total / 16;
  std::vector<Ref<Buffer>> pieces;
  const auto error = thrown_by("twice the physical memory", [&] {
    for (int i = 0; i < 32; ++i) {
      pieces.push_back((i % 2 == 0 ? first : second)->allocator().allocate(piece));
    }
  });
  expect_code(error, Code::kResourceExhausted, "twice the physical memory");
  expect(pieces.size() <= 16, pieces.size(), " sixteenths of the physical memory were given out");
  expect(pieces.size() >= 12, "only ", pieces.size(),
         " sixteenths of the physical memory were given out");
  pieces.clear();
}

}  // namespace

void add_limit_cases(std::vector<Case>& cases) {
  cases.insert(cases.end(), {{"limits/exact", exact},
                             {"limits/text", text},
                             {"limits/preallocated", preallocated},
                             {"limits/logical_devices_are_apart", logical_devices_are_apart},
                             {"limits/share_physical_memory", share_physical_memory}});
}

}  // namespace tandem::conformance
