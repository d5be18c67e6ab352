#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "tandem/device/conformance/internal/cases.h"

namespace tandem::conformance {
namespace {

// An event of no device, as somebody above may make one.
class ForeignEvent final : public Event {
 public:
  bool done() const override {
    std::lock_guard lock(mutex_);
    return set_;
  }
  void wait() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return set_; });
  }
  void set() {
    std::lock_guard lock(mutex_);
    set_ = true;
    changed_.notify_all();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
};

void on_empty_stream(const Lab& lab) {
  const auto device = lab.make();
  Stream& stream = device->stream(StreamKind::kCompute);
  const Ref<Event> event = stream.record();
  event->wait();
  expect(event->done(), "an event that was waited for is not done");
  event->wait();
  device->stream(StreamKind::kCopyIn).wait_for(event);
  stream.wait_for(event);
  stream.synchronize();
}

void after_work(const Lab& lab) {
  const auto device = lab.make();
  Stream& stream = device->stream(StreamKind::kCompute);
  const auto ran = std::make_shared<std::atomic<int>>(0);
  for (int i = 1; i <= 20; ++i) {
    stream.enqueue(host_work([ran] { ++*ran; }));
    const Ref<Event> event = stream.record();
    if (i % 2 == 0) continue;
    event->wait();
    expect(*ran == i, "an event is done after ", ran->load(), " of ", i, " pieces of work");
  }
  stream.synchronize();
}

void not_before(const Lab& lab) {
  const auto device = lab.make_asynchronous();
  const auto gate = std::make_shared<Gate>();
  const OpenAtEnd open(gate);
  Stream& stream = device->stream(StreamKind::kCompute);
  const Ref<Event> before = stream.record();
  stream.enqueue(host_work([gate] { gate->pass(); }));
  const Ref<Event> event = stream.record();
  before->wait();
  expect(!event->done(), "an event is done before the work in front of it");
  gate->open();
  event->wait();
  expect(event->done(), "an event that was waited for is not done");
}

void orders_streams(const Lab& lab) {
  const auto device = lab.make();
  Stream& first = device->stream(StreamKind::kCompute);
  Stream& second = device->stream(StreamKind::kCopyIn);
  // Two streams take turns; each touches the count without a lock.
  const auto count = std::make_shared<int>(0);
  const auto wrong = std::make_shared<int>(0);
  for (int i = 0; i < 200; ++i) {
    Stream& stream = i % 2 == 0 ? first : second;
    Stream& other = i % 2 == 0 ? second : first;
    stream.enqueue(host_work([count, wrong, i] { *wrong += (*count)++ != i; }));
    other.wait_for(stream.record());
  }
  first.synchronize();
  expect(*count == 200 && *wrong == 0, "work of two streams ran out of order");
}

void across_devices(const Lab& lab) {
  const auto first = lab.make(0);
  const auto second = lab.make(1);
  const auto count = std::make_shared<int>(0);
  for (int i = 0; i < 100; ++i) {
    Stream& from = (i % 2 == 0 ? first : second)->stream(StreamKind::kCompute);
    Stream& to = (i % 2 == 0 ? second : first)->stream(StreamKind::kCompute);
    from.enqueue(host_work([count] { ++*count; }));
    to.wait_for(from.record());
  }
  first->stream(StreamKind::kCompute).synchronize();
  expect(*count == 100, *count, " of 100 pieces of work ran");
}

void wait_for_does_not_block(const Lab& lab) {
  const auto device = lab.make_asynchronous();
  const auto gate = std::make_shared<Gate>();
  const OpenAtEnd open(gate);
  Stream& first = device->stream(StreamKind::kCompute);
  Stream& second = device->stream(StreamKind::kCopyOut);
  const auto order = std::make_shared<std::vector<int>>();
  const auto outcomes = std::make_shared<Outcomes>();
  first.enqueue(host_work([gate, order] {
    gate->pass();
    order->push_back(1);
  }));
  second.wait_for(first.record());
  second.enqueue(host_work([order] { order->push_back(2); }, into(outcomes)));
  expect(outcomes->count() == 0, "work did not wait for the event");
  gate->open();  // reached only if nothing above blocks
  expect(outcomes->wait(1).front() == nullptr, "work after an event fails");
  expect(*order == std::vector<int>({1, 2}), "work began before the event");
}

void waits_for_foreign_event(const Lab& lab) {
  const auto device = lab.make_asynchronous();
  Stream& stream = device->stream(StreamKind::kCompute);
  const auto outcomes = std::make_shared<Outcomes>();
  const auto event = make_ref<ForeignEvent>();
  stream.wait_for(event);
  stream.enqueue(host_work([] {}, into(outcomes)));
  const Ref<Buffer> buffer = device->allocator().allocate(100);
  write(*device, buffer, pattern(100, 1));  // other streams go on meanwhile
  const std::size_t early = outcomes->count();
  event->set();
  outcomes->wait(1);
  expect(early == 0, "work did not wait for the event");
}

void after_failure(const Lab& lab) {
  const auto device = lab.make();
  Stream& first = device->stream(StreamKind::kCompute);
  Stream& second = device->stream(StreamKind::kCopyIn);
  // Each waiter has its own flag: the order of notification is not specified.
  const auto failed = std::make_shared<Outcomes>(), waited = std::make_shared<Outcomes>();
  first.enqueue(host_work([] { throw OutOfRangeError("on purpose"); }, into(failed)));
  second.wait_for(first.record());
  second.enqueue(host_work([] {}, into(waited)));
  expect_code(failed->wait(1).front(), Code::kOutOfRange, "`done` of work that throws");
  expect_success(waited->wait(1).front(), "work that waited for a stream with a failure");
}

void outlive_device(const Lab& lab) {
  auto device = lab.make();
  Stream& stream = device->stream(StreamKind::kCompute);
  stream.enqueue(host_work([] {}));
  const Ref<Event> event = stream.record();
  event->wait();
  device = nullptr;
  expect(event->done(), "an event was done, and is no longer");
  event->wait();
}

}  // namespace

void add_event_cases(std::vector<Case>& cases) {
  cases.insert(cases.end(), {{"events/on_empty_stream", on_empty_stream},
                             {"events/after_work", after_work},
                             {"events/not_before", not_before},
                             {"events/orders_streams", orders_streams},
                             {"events/across_devices", across_devices},
                             {"events/wait_for_does_not_block", wait_for_does_not_block},
                             {"events/waits_for_foreign_event", waits_for_foreign_event},
                             {"events/after_failure", after_failure},
                             {"events/outlive_device", outlive_device}});
}

}  // namespace tandem::conformance
