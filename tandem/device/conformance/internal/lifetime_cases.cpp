#include <cstring>
#include <thread>
#include <vector>

#include "tandem/device/conformance/internal/cases.h"

namespace tandem::conformance {
namespace {

constexpr std::size_t kBytes = 5000;

void pending_work(const Lab& lab) {
  auto device = lab.make_asynchronous();
  const auto gate = std::make_shared<Gate>();
  const OpenAtEnd open(gate);
  const auto outcomes = std::make_shared<Outcomes>();
  for (StreamKind kind : {StreamKind::kCompute, StreamKind::kCopyIn, StreamKind::kCopyOut}) {
    Stream& stream = device->stream(kind);
    stream.enqueue(host_work([gate] { gate->pass(); }, into(outcomes)));
    for (int i = 0; i < 20; ++i) stream.enqueue(host_work([] {}, into(outcomes)));
  }
  std::thread opener([gate] { gate->open(); });
  device = nullptr;
  opener.join();
  outcomes->wait(63);
  expect(outcomes->count() == 63, "`done` was called more than once");
}

// A buffer either keeps its device, or knows that it has none any more; it can be let go of later.
void buffers_outlive_handle(const Lab& lab) {
  auto device = lab.make();
  Ref<Buffer> buffer = device->allocator().allocate(kBytes);
  write(*device, buffer, pattern(kBytes, 1));
  const std::string name = device->name();
  device = nullptr;
  if (buffer->space() == nullptr) {
    const auto* bytes = static_cast<const std::uint8_t*>(buffer->data());
    return expect_bytes({bytes, bytes + kBytes}, pattern(kBytes, 1), "a buffer without its device");
  }
  if (buffer->space()->device == nullptr) {
    const auto another = lab.make();
    buffer = nullptr;
    return write(*another, another->allocator().allocate(kBytes), pattern(kBytes, 2));
  }
  Device& alive = *buffer->space()->device;
  expect(alive.name() == name, "the device of a buffer is not what it was");
  expect_bytes(read(alive, buffer, kBytes), pattern(kBytes, 1), "a buffer that keeps its device");
}

// The last to hold a device may be a copy, so that the device goes on a thread of its own.
void last_held_by_copy(const Lab& lab) {
  for (std::uint32_t i = 0; i < 20; ++i) {
    auto device = lab.make();
    const Ref<Buffer> back = allocate_host_buffer(kBytes);
    const auto outcomes = std::make_shared<Outcomes>();
    {
      const Ref<Buffer> buffer = device->allocator().allocate(kBytes);
      write(*device, buffer, pattern(kBytes, i));
      device->stream(StreamKind::kCopyOut)
          .enqueue(Copy{buffer, 0, back, 0, kBytes, into(outcomes)});
    }
    device = nullptr;
    const auto error = outcomes->wait(1).front();
    if (error) {
      // The device may also give up what is pending when nothing else holds it.
      expect_code(error, Code::kUnavailable, "a copy of a device that was let go of");
      continue;
    }
    const auto* bytes = static_cast<const std::uint8_t*>(back->data());
    expect_bytes({bytes, bytes + kBytes}, pattern(kBytes, i), "a copy that outlives its device");
  }
}

// The last buffer is held by the captures of work.
void last_held_by_work(const Lab& lab) {
  for (int i = 0; i < 20; ++i) {
    auto device = lab.make();
    const auto outcomes = std::make_shared<Outcomes>();
    Ref<Buffer> buffer = device->allocator().allocate(kBytes);
    device->stream(StreamKind::kCompute)
        .enqueue(host_work([buffer] {},
                           [buffer, outcomes](std::exception_ptr error) { outcomes->add(error); }));
    buffer = nullptr;
    device = nullptr;
    outcomes->wait(1);
  }
}

void many_devices(const Lab& lab) {
  for (int i = 0; i < lab.options().many_devices; ++i) {
    const auto device = lab.make();
    const Ref<Buffer> buffer = device->allocator().allocate(64);
    if (i % 10 == 0) {
      write(*device, buffer, pattern(64, 1));
      expect_bytes(read(*device, buffer, 64), pattern(64, 1), "one device of many");
    }
    device->stream(StreamKind::kCompute).enqueue(host_work([] {}));
  }
}

void made_by_many_threads(const Lab& lab) {
  const auto problems = std::make_shared<Outcomes>();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&lab, problems, t] {
      try {
        for (int i = 0; i < 10; ++i) {
          const auto device = lab.make(t);
          const Ref<Buffer> buffer = device->allocator().allocate(kBytes);
          write(*device, buffer, pattern(kBytes, 2));
          expect_bytes(read(*device, buffer, kBytes), pattern(kBytes, 2), "a device of one thread");
        }
      } catch (...) {
        problems->add(std::current_exception());
      }
    });
  }
  for (std::thread& t : threads) t.join();
  if (problems->count() != 0) std::rethrow_exception(problems->wait(1).front());
}

}  // namespace

void add_lifetime_cases(std::vector<Case>& cases) {
  cases.insert(cases.end(), {{"lifetime/pending_work", pending_work},
                             {"lifetime/buffers_outlive_handle", buffers_outlive_handle},
                             {"lifetime/last_held_by_copy", last_held_by_copy},
                             {"lifetime/last_held_by_work", last_held_by_work},
                             {"lifetime/many_devices", many_devices},
                             {"lifetime/made_by_many_threads", made_by_many_threads}});
}

}  // namespace tandem::conformance
