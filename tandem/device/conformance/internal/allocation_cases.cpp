#include <algorithm>
#include <thread>
#include <vector>

#include "tandem/device/conformance/internal/cases.h"

namespace tandem::conformance {
namespace {

constexpr std::size_t kBlock = std::size_t{64} << 10;

std::uintptr_t address(const Ref<Buffer>& buffer) {
  return reinterpret_cast<std::uintptr_t>(buffer->data());
}

void properties(const Lab& lab) {
  expect(lab.backend().unavailable().empty(), "there are devices, but unavailable() says \"",
         lab.backend().unavailable(), "\"");
  const auto all = lab.all();
  for (std::size_t i = 0; i < all.size(); ++i) {
    expect(all[i].name.starts_with(cat("/physical_device:", all[i].device_type, ":")),
           "a physical device is called ", all[i].name);
    for (std::size_t k = 0; k < i; ++k) {
      expect(all[i].name != all[k].name, "two physical devices are called ", all[i].name);
    }
  }
  const auto device = lab.make(3);
  expect(device->type() == lab.physical().device_type, "type() is ", device->type());
  expect(device->name() == cat(DeviceSpec::default_task().to_string(),
                               "/device:", lab.physical().device_type, ":3"),
         "name() is ", device->name());
  expect(!device->kernel_class().empty(), "kernel_class() is empty");
  expect(device->lost().empty(), "a new device is lost: ", device->lost());
  const std::string& text = device->properties().description;
  expect(!text.empty() && text.find('\n') == std::string::npos,
         "the description is not one line: \"", text, "\"");
  expect(device->properties().compute_streams == device->num_streams(StreamKind::kCompute),
         "properties say ", device->properties().compute_streams, " compute streams, not ",
         device->num_streams(StreamKind::kCompute));
}

void space(const Lab& lab) {
  const auto device = lab.make();
  const Ref<Buffer> buffer = device->allocator().allocate(kBlock);
  expect(buffer->space() == device->memory_space(), "a buffer does not name its device's memory");
  if (const MemorySpace* memory = device->memory_space()) {
    expect(memory->device == device.get(), "the memory space names another device");
  }
  const Ref<Buffer> staging = device->staging_allocator().allocate(kBlock);
  expect(staging->space() == nullptr, "staging memory is not the host's");
  std::fill_n(static_cast<char*>(staging->data()), kBlock, 'x');
}

void alignment(const Lab& lab) {
  const auto device = lab.make();
  std::vector<Ref<Buffer>> buffers;
  for (std::size_t bytes : {1, 2, 3, 63, 64, 65, 255, 256, 257, 4096, 5000, 100001}) {
    const Ref<Buffer> buffer = buffers.emplace_back(device->allocator().allocate(bytes));
    expect(buffer->size() == bytes, "asked for ", bytes, " bytes, got ", buffer->size());
    expect(address(buffer) % 64 == 0, bytes, " bytes are not aligned to 64");
    expect(buffer->owned() && !buffer->planned(), "a new buffer is not its owner's alone");
  }
}

void zero_bytes(const Lab& lab) {
  const auto device = lab.make();
  const Ref<Buffer> first = device->allocator().allocate(0);
  const Ref<Buffer> second = device->allocator().allocate(0);
  expect(first && second, "allocate(0) returns null");
  expect(first->size() == 0, "a buffer of no bytes has ", first->size());
  expect(first->space() == device->memory_space(), "a buffer of no bytes names no memory");
}

void distinct(const Lab& lab) {
  const auto device = lab.make();
  std::vector<Ref<Buffer>> buffers;
  for (int i = 0; i < 64; ++i) buffers.push_back(device->allocator().allocate(1000 + 17 * i));
  std::sort(buffers.begin(), buffers.end(),
            [](const auto& a, const auto& b) { return address(a) < address(b); });
  for (std::size_t i = 1; i < buffers.size(); ++i) {
    expect(address(buffers[i - 1]) + buffers[i - 1]->size() <= address(buffers[i]),
           "two buffers overlap");
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    write(*device, buffers[i], pattern(buffers[i]->size(), static_cast<std::uint32_t>(i)));
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    expect_bytes(read(*device, buffers[i], buffers[i]->size()),
                 pattern(buffers[i]->size(), static_cast<std::uint32_t>(i)), "a buffer among many");
  }
}

void stats(const Lab& lab) {
  const auto device = lab.make();
  Allocator& allocator = device->allocator();
  const std::size_t before = allocator.stats().current;
  Ref<Buffer> first = allocator.allocate(kBlock);
  Ref<Buffer> second = allocator.allocate(2 * kBlock);
  const MemoryStats both = allocator.stats();
  expect(both.current >= before + 3 * kBlock, "192 KiB allocated, ", both.current - before,
         " in use");
  expect(both.peak >= both.current, "the peak ", both.peak, " is below ", both.current);
  second = nullptr;
  const MemoryStats one = allocator.stats();
  expect(one.current < both.current, "freed memory still counts as used");
  expect(one.peak >= both.current, "the peak fell when memory was freed");
  first = nullptr;
  expect(allocator.stats().current == before, allocator.stats().current - before,
         " bytes in use after all was freed");
}

void reset_peak(const Lab& lab) {
  const auto device = lab.make();
  Allocator& allocator = device->allocator();
  allocator.allocate(16 * kBlock);
  const Ref<Buffer> kept = allocator.allocate(kBlock);
  allocator.reset_peak();
  const MemoryStats after = allocator.stats();
  expect(after.peak == after.current, "after reset_peak the peak is ", after.peak, ", and ",
         after.current, " bytes are in use");
}

void comes_back(const Lab& lab) {
  const auto device = lab.make_limited(lab.options().memory_limit);
  // Twenty times the limit in all: without reuse the third of them finds nothing.
  for (int i = 0; i < 40; ++i) {
    const Ref<Buffer> buffer = device->allocator().allocate(lab.options().memory_limit / 2);
    expect(buffer->size() == lab.options().memory_limit / 2, "a buffer of another size");
  }
}

void coalesces(const Lab& lab) {
  const std::size_t limit = lab.options().memory_limit;
  const auto device = lab.make_limited(limit);
  for (std::size_t pieces : {8, 64, 16}) {
    std::vector<Ref<Buffer>> buffers;
    for (std::size_t i = 0; i < pieces; ++i) {
      buffers.push_back(device->allocator().allocate(limit / pieces));
    }
    for (std::size_t i = 0; i < pieces; i += 2) buffers[i] = nullptr;
    buffers.clear();
    device->allocator().allocate(limit);  // all free pieces serve as one
  }
}

void from_many_threads(const Lab& lab) {
  const auto device = lab.make();
  const std::size_t before = device->allocator().stats().current;
  std::vector<std::thread> threads;
  const auto problems = std::make_shared<Outcomes>();
  for (std::uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&device, problems, t] {
      try {
        for (std::uint32_t i = 0; i < 50; ++i) {
          const Ref<Buffer> buffer = device->allocator().allocate(100 + 40 * i);
          const auto bytes = pattern(buffer->size(), 100 * t + i);
          write(*device, buffer, bytes);
          expect_bytes(read(*device, buffer, bytes.size()), bytes, "a buffer of one thread");
        }
      } catch (...) {
        problems->add(std::current_exception());
      }
    });
  }
  for (std::thread& t : threads) t.join();
  if (problems->count() != 0) std::rethrow_exception(problems->wait(1).front());
  expect(device->allocator().stats().current == before, "memory is in use after all was freed");
}

void too_much(const Lab& lab) {
  const auto device = lab.make();
  for (std::size_t bytes : {SIZE_MAX, SIZE_MAX - 63, SIZE_MAX / 2}) {
    const auto error = thrown_by("an allocation of nearly 2^64 bytes",
                                 [&] { device->allocator().allocate(bytes); });
    expect_code(error, Code::kResourceExhausted, "an allocation of nearly 2^64 bytes");
  }
  const Ref<Buffer> buffer = device->allocator().allocate(kBlock);  // and life goes on
  write(*device, buffer, pattern(kBlock, 1));
}

}  // namespace

void add_allocation_cases(std::vector<Case>& cases) {
  cases.insert(cases.end(), {{"device/properties", properties},
                             {"allocation/space", space},
                             {"allocation/alignment", alignment},
                             {"allocation/zero_bytes", zero_bytes},
                             {"allocation/distinct", distinct},
                             {"allocation/stats", stats},
                             {"allocation/reset_peak", reset_peak},
                             {"allocation/comes_back", comes_back},
                             {"allocation/coalesces", coalesces},
                             {"allocation/from_many_threads", from_many_threads},
                             {"allocation/too_much", too_much}});
}

}  // namespace tandem::conformance
