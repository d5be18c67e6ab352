#include <atomic>
#include <vector>

#include "tandem/device/conformance/internal/cases.h"

namespace tandem::conformance {
namespace {

void lose(const Lab& lab, Device& device) {
  expect(lab.options().lose != nullptr, "the options give no way to lose a device");
  lab.options().lose(device);
}

void lost_enqueue(const Lab& lab) {
  const auto device = lab.make();
  Ref<Buffer> buffer = device->allocator().allocate(1000);
  lose(lab, *device);
  expect(!device->lost().empty(), "lost() is empty for a lost device");
  const auto calls = std::make_shared<std::atomic<int>>(0);
  for (StreamKind kind : {StreamKind::kCompute, StreamKind::kCopyIn, StreamKind::kCopyOut}) {
    Stream& stream = device->stream(kind);
    const auto error = thrown_by("work for a lost device", [&] {
      stream.enqueue(host_work([calls] { ++*calls; }, [calls](std::exception_ptr) { ++*calls; }));
    });
    expect_code(error, Code::kUnavailable, "work for a lost device");
    const std::string name = device->name().substr(device->name().rfind('/'));
    expect(message_of(error).find(name.substr(sizeof("/device:") - 1)) != std::string::npos,
           "the text does not name the device: ", message_of(error));
    expect_code(thrown_by("a copy for a lost device",
                          [&] {
                            stream.enqueue(Copy{buffer, 0, allocate_host_buffer(10), 0, 10,
                                                [calls](std::exception_ptr) { ++*calls; }});
                          }),
                Code::kUnavailable, "a copy for a lost device");
  }
  buffer = nullptr;
  expect(*calls == 0, "work of a lost device ran, or its `done` was called");
}

void lost_pending(const Lab& lab) {
  const auto device = lab.make_asynchronous();
  const auto gate = std::make_shared<Gate>();
  const OpenAtEnd open(gate);
  Stream& stream = device->stream(StreamKind::kCompute);
  Stream& copies = device->stream(StreamKind::kCopyOut);
  const Ref<Buffer> buffer = device->allocator().allocate(1000);
  const auto first = std::make_shared<Outcomes>();
  const auto later = std::make_shared<Outcomes>();
  const auto ran = std::make_shared<std::atomic<int>>(0);
  const auto started = std::make_shared<Gate>();
  stream.enqueue(host_work(
      [gate, started] {
        started->open();
        gate->pass();
      },
      into(first)));
  for (int i = 0; i < 10; ++i) stream.enqueue(host_work([ran] { ++*ran; }, into(later)));
  copies.wait_for(stream.record());
  copies.enqueue(Copy{buffer, 0, allocate_host_buffer(1000), 0, 1000, into(later)});
  started->pass();
  lose(lab, *device);
  gate->open();
  first->wait(1);
  for (const auto& error : later->wait(11)) {
    expect_code(error, Code::kUnavailable, "`done` of work that was pending");
  }
  expect(*ran == 0, "work ran after its device was lost");
  expect(later->count() == 11 && first->count() == 1, "`done` was called more than once");
}

// No wait lasts for ever: what is recorded on a lost device ends with the error.
void lost_waiting(const Lab& lab) {
  const auto device = lab.make_asynchronous();
  const auto gate = std::make_shared<Gate>();
  const OpenAtEnd open(gate);
  Stream& stream = device->stream(StreamKind::kCompute);
  const auto started = std::make_shared<Gate>();
  stream.enqueue(host_work([gate, started] {
    started->open();
    gate->pass();
  }));
  started->pass();
  stream.enqueue(host_work([] {}));
  const Ref<Event> event = stream.record();
  lose(lab, *device);
  gate->open();
  expect_code(thrown_by("an event of a lost device", [&] { event->wait(); }), Code::kUnavailable,
              "an event of a lost device");
}

void lost_leaves_others(const Lab& lab) {
  const auto all = lab.all();
  expect(lab.options().lose != nullptr, "the options give no way to lose a device");
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i == lab.options().physical) continue;
    const auto lost = lab.make(0);
    const auto other = lab.make(all[i], {}, 1);
    lose(lab, *lost);
    expect(other->lost().empty(), "another physical device is lost too");
    const Ref<Buffer> buffer = other->allocator().allocate(1000);
    write(*other, buffer, pattern(1000, 1));
    expect_bytes(read(*other, buffer, 1000), pattern(1000, 1), "a device beside a lost one");
    return;
  }
  fail("there is one physical device alone");
}

}  // namespace

void add_failure_cases(std::vector<Case>& cases) {
  cases.insert(cases.end(), {{"failure/lost_enqueue", lost_enqueue},
                             {"failure/lost_pending", lost_pending},
                             {"failure/lost_waiting", lost_waiting},
                             {"failure/lost_leaves_others", lost_leaves_others}});
}

}  // namespace tandem::conformance
