#include <atomic>
#include <thread>
#include <vector>

#include "tandem/device/conformance/internal/cases.h"

namespace tandem::conformance {
namespace {

constexpr StreamKind kKinds[] = {StreamKind::kCompute, StreamKind::kCopyIn, StreamKind::kCopyOut};

Work failing(std::function<void(std::exception_ptr)> done = {}) {
  return {.run = [] { throw OutOfRangeError("the work failed on purpose"); },
          .done = std::move(done)};
}

// A synchronous device reports a failure where it happens: in enqueue.
bool reports_at_once(const Device& device, Stream& stream) {
  try {
    stream.enqueue(failing());
  } catch (const OutOfRangeError&) {
    expect(device.synchronous(),
           "enqueue throws what the work threw, on a device that is not "
           "synchronous");
    return true;
  }
  return false;
}

void expect_nothing_left(Stream& stream) {
  try {
    stream.synchronize();
  } catch (const Error& error) {
    fail("synchronize reports an already reported failure: ", error.what());
  }
}

void indices(const Lab& lab) {
  const auto device = lab.make();
  for (StreamKind kind : kKinds) {
    const int count = device->num_streams(kind);
    expect(count >= 1, "there is no stream of kind ", static_cast<int>(kind));
    for (int i = 0; i < count; ++i) {
      Stream& stream = device->stream(kind, i);
      expect(&stream == &device->stream(kind, i), "the same index gives another stream");
      const auto outcomes = std::make_shared<Outcomes>();
      stream.enqueue(host_work([] {}, into(outcomes)));
      expect(outcomes->wait(1).front() == nullptr, "work that does nothing fails");
    }
    for (int i : {-1, count}) {
      expect_code(thrown_by("a stream of no such index", [&] { device->stream(kind, i); }),
                  Code::kInvalidArgument, "a stream of no such index");
    }
  }
}

void in_order(const Lab& lab) {
  const auto device = lab.make();
  Stream& stream = device->stream(StreamKind::kCompute);
  const auto order = std::make_shared<std::vector<int>>();  // one after the other: no lock
  for (int i = 0; i < 300; ++i) {
    Work work = host_work([order, i] { order->push_back(i); });
    work.on_host = i % 2 == 0;
    stream.enqueue(std::move(work));
  }
  stream.synchronize();
  expect(order->size() == 300, order->size(), " of 300 pieces of work ran");
  for (int i = 0; i < 300; ++i) expect((*order)[static_cast<std::size_t>(i)] == i, "out of order");
}

void done_after_run(const Lab& lab) {
  const auto device = lab.make();
  Stream& stream = device->stream(StreamKind::kCompute);
  const auto outcomes = std::make_shared<Outcomes>();
  const auto ran = std::make_shared<std::atomic<int>>(0);
  for (int i = 0; i < 100; ++i) {
    stream.enqueue(Work{.run = [ran] { ++*ran; },
                        .flops = 10,
                        .bytes = 10,
                        .done =
                            [ran, outcomes, i](std::exception_ptr error) {
                              if (!error && *ran <= i) {
                                error = std::make_exception_ptr(
                                    InternalError("`done` was called before the work ran"));
                              }
                              outcomes->add(error);
                            }});
  }
  for (const auto& error : outcomes->wait(100)) {
    expect_success(error, "work");
  }
  stream.synchronize();
  expect(outcomes->count() == 100, "`done` was called ", outcomes->count(), " times for 100");
}

void done_may_enqueue(const Lab& lab) {
  const auto device = lab.make();
  Stream& stream = device->stream(StreamKind::kCompute);
  Stream& other = device->stream(StreamKind::kCopyIn);
  const auto outcomes = std::make_shared<Outcomes>();
  stream.enqueue(host_work([] {},
                           [&stream, &other, outcomes](std::exception_ptr) {
                             stream.enqueue(host_work([] {}, into(outcomes)));
                             other.enqueue(host_work([] {}, into(outcomes)));
                           }));
  outcomes->wait(2);
}

void failure_reaches_done(const Lab& lab) {
  const auto device = lab.make();
  Stream& stream = device->stream(StreamKind::kCompute);
  const auto outcomes = std::make_shared<Outcomes>();
  stream.enqueue(failing(into(outcomes)));
  const auto error = outcomes->wait(1).front();
  expect_code(error, Code::kOutOfRange, "`done` of work that throws");
  expect(message_of(error).find("on purpose") != std::string::npos,
         "the text got lost: ", message_of(error));
  expect_nothing_left(stream);
}

void failure_reaches_synchronize(const Lab& lab) {
  const auto device = lab.make();
  Stream& stream = device->stream(StreamKind::kCompute);
  if (!reports_at_once(*device, stream)) {
    expect_code(thrown_by("synchronize", [&] { stream.synchronize(); }), Code::kOutOfRange,
                "synchronize");
  }
  expect_nothing_left(stream);
}

void failure_reaches_event(const Lab& lab) {
  const auto device = lab.make();
  Stream& stream = device->stream(StreamKind::kCompute);
  if (!reports_at_once(*device, stream)) {
    const Ref<Event> event = stream.record();
    expect_code(thrown_by("waiting for an event", [&] { event->wait(); }), Code::kOutOfRange,
                "an event after work that throws");
    expect(event->done(), "an event that was waited for is not done");
  }
  expect_nothing_left(stream);
}

void goes_on_after_failure(const Lab& lab) {
  const auto device = lab.make();
  Stream& stream = device->stream(StreamKind::kCompute);
  const auto outcomes = std::make_shared<Outcomes>();
  stream.enqueue(failing(into(outcomes)));
  stream.enqueue(host_work([] {}, into(outcomes)));
  const auto errors = outcomes->wait(2);
  expect_code(errors[0], Code::kOutOfRange, "`done` of work that throws");
  expect_success(errors[1], "work after a failure");
}

void not_of_tandem(const Lab& lab) {
  const auto device = lab.make();
  const auto outcomes = std::make_shared<Outcomes>();
  Stream& stream = device->stream(StreamKind::kCompute);
  stream.enqueue(
      Work{.run = [] { throw std::runtime_error("something else"); }, .done = into(outcomes)});
  stream.enqueue(Work{.run = [] { throw 7; }, .done = into(outcomes)});
  for (const auto& error : outcomes->wait(2))
    expect(error != nullptr, "a foreign exception is lost");
}

void independent(const Lab& lab) {
  const auto device = lab.make_asynchronous();
  const auto gate = std::make_shared<Gate>();
  const OpenAtEnd open(gate);
  const auto blocked = std::make_shared<Outcomes>();
  device->stream(StreamKind::kCompute).enqueue(host_work([gate] { gate->pass(); }, into(blocked)));
  const Ref<Buffer> buffer = device->allocator().allocate(1000);
  write(*device, buffer, pattern(1000, 1));  // by the copy streams
  expect_bytes(read(*device, buffer, 1000), pattern(1000, 1), "a copy beside blocked work");
  for (int i = 1; i < device->num_streams(StreamKind::kCompute); ++i) {
    const auto outcomes = std::make_shared<Outcomes>();
    device->stream(StreamKind::kCompute, i).enqueue(host_work([] {}, into(outcomes)));
    outcomes->wait(1);
  }
  const auto other = lab.make(1);
  const auto outcomes = std::make_shared<Outcomes>();
  other->stream(StreamKind::kCompute).enqueue(host_work([] {}, into(outcomes)));
  outcomes->wait(1);
  expect(blocked->count() == 0, "the blocked work is over");
  gate->open();
  blocked->wait(1);
}

void enqueue_does_not_block(const Lab& lab) {
  const auto device = lab.make_asynchronous();
  const auto gate = std::make_shared<Gate>();
  const OpenAtEnd open(gate);
  const auto outcomes = std::make_shared<Outcomes>();
  Stream& stream = device->stream(StreamKind::kCompute);
  stream.enqueue(host_work([gate] { gate->pass(); }, into(outcomes)));
  for (int i = 0; i < 1000; ++i) stream.enqueue(host_work([] {}, into(outcomes)));
  expect(outcomes->count() == 0, "work ran before that which stands in front of it");
  gate->open();
  for (const auto& error : outcomes->wait(1001)) {
    expect_success(error, "work");
  }
}

void from_many_threads(const Lab& lab) {
  const auto device = lab.make();
  Stream& stream = device->stream(StreamKind::kCompute);
  const auto outcomes = std::make_shared<Outcomes>();
  const auto inside = std::make_shared<std::atomic<int>>(0);
  const auto overlaps = std::make_shared<std::atomic<int>>(0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, outcomes, inside, overlaps] {
      for (int i = 0; i < 100; ++i) {
        stream.enqueue(host_work(
            [inside, overlaps] {
              if (++*inside != 1) ++*overlaps;
              --*inside;
            },
            into(outcomes)));
      }
    });
  }
  for (std::thread& t : threads) t.join();
  outcomes->wait(400);
  // On a synchronous device the callers are the streams.
  expect(device->synchronous() || *overlaps == 0, "work of one stream overlaps itself");
}

}  // namespace

void add_stream_cases(std::vector<Case>& cases) {
  cases.insert(cases.end(), {{"streams/indices", indices},
                             {"streams/in_order", in_order},
                             {"streams/done_after_run", done_after_run},
                             {"streams/done_may_enqueue", done_may_enqueue},
                             {"streams/failure_reaches_done", failure_reaches_done},
                             {"streams/failure_reaches_synchronize", failure_reaches_synchronize},
                             {"streams/failure_reaches_event", failure_reaches_event},
                             {"streams/goes_on_after_failure", goes_on_after_failure},
                             {"streams/foreign_exceptions", not_of_tandem},
                             {"streams/independent", independent},
                             {"streams/enqueue_does_not_block", enqueue_does_not_block},
                             {"streams/from_many_threads", from_many_threads}});
}

}  // namespace tandem::conformance
