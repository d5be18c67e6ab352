#include "tandem/graph/rendezvous.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/cancellation.h"
#include "tandem/core/error.h"

namespace td = tandem;

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kPs = "/job:ps/replica:0/task:0/device:CPU:0";
constexpr const char* kWorker = "/job:worker/replica:0/task:1/device:CPU:0";

td::RendezvousKey key(const std::string& name, td::FrameIteration at = {}) {
  return {kPs, 0x16959b5cef36f26eu, kWorker, name, at};
}

// What a receive ended with.
struct Received {
  int calls = 0;
  std::exception_ptr error;
  td::Array value;
  bool is_dead = false;

  td::Rendezvous::RecvDone done() {
    return [this](std::exception_ptr e, td::Array v, bool dead) {
      ++calls;
      error = std::move(e);
      value = std::move(v);
      is_dead = dead;
    };
  }
};

TEST(RendezvousKey, IsTensorFlowsText) {
  const td::RendezvousKey k = key("edge_4_y/ReadVariableOp");
  EXPECT_EQ(k.text(),
            "/job:ps/replica:0/task:0/device:CPU:0;16959b5cef36f26e;"
            "/job:worker/replica:0/task:1/device:CPU:0;edge_4_y/ReadVariableOp;0:0");
  const td::RendezvousKey again = td::RendezvousKey::parse(k.text());
  EXPECT_EQ(again, k);
  EXPECT_EQ(again.source_device(), kPs);
  EXPECT_EQ(again.destination_device(), kWorker);
  EXPECT_EQ(again.source_incarnation(), 0x16959b5cef36f26eu);
  EXPECT_EQ(again.tensor_name(), "edge_4_y/ReadVariableOp");
  EXPECT_EQ(k.tensor_name(), "edge_4_y/ReadVariableOp");
}

TEST(RendezvousKey, HoldsFrameAndIteration) {
  const td::FrameIteration at{td::child_frame({}, "loop"), 7};
  const td::RendezvousKey again = td::RendezvousKey::parse(key("e", at).text());
  EXPECT_EQ(again.frame_iteration(), at);
  EXPECT_NE(td::child_frame({}, "loop"), td::child_frame({}, "other"));
  EXPECT_NE(td::child_frame(at, "inner"), td::child_frame({at.frame, 8}, "inner"));
}

TEST(RendezvousKey, RefusesWhatIsMalformed) {
  const std::string ps = kPs, worker = kWorker;
  for (const std::string& text :
       {std::string("bad"), std::string(), ps + ";1;" + worker + ";e",
        ps + ";xyz;" + worker + ";e;0:0", ps + ";1;" + worker + ";e;0",
        ps + ";1;" + worker + ";e;0:0;", ps + ";1;" + worker + ";;0:0",
        "/job:ps;1;" + worker + ";e;0:0", ps + ";1;CPU:0;e;0:0", ps + ";1;" + worker + ";e;x:0"}) {
    try {
      td::RendezvousKey::parse(text);
      ADD_FAILURE() << text;
    } catch (const td::InvalidArgumentError& error) {
      EXPECT_THAT(error.what(), HasSubstr("Invalid  rendezvous key: " + text));
    }
  }
}

TEST(Rendezvous, GivesAValueWhicheverSideComesFirst) {
  Received before, after;
  td::Ref<td::LocalRendezvous> meet = td::make_ref<td::LocalRendezvous>();
  meet->recv_async(key("a"), nullptr, before.done());
  EXPECT_EQ(before.calls, 0);
  EXPECT_THAT(meet->unanswered(), ElementsAre(key("a").text()));
  meet->send(key("a"), td::Array::scalar(1.0f), false);
  EXPECT_EQ(before.calls, 1);
  EXPECT_EQ(*before.value.data<float>(), 1.0f);

  meet->send(key("b"), td::Array::scalar(2.0f), false);
  EXPECT_THAT(meet->unreceived(), ElementsAre(key("b").text()));
  meet->recv_async(key("b"), nullptr, after.done());
  EXPECT_EQ(*after.value.data<float>(), 2.0f);
  EXPECT_THAT(meet->unreceived(), IsEmpty());
  EXPECT_THAT(meet->unanswered(), IsEmpty());
}

TEST(Rendezvous, KeepsIterationsApartAndForwardsDeadValues) {
  Received first, second;
  td::Ref<td::LocalRendezvous> meet = td::make_ref<td::LocalRendezvous>();
  const std::uint64_t loop = td::child_frame({}, "loop");
  meet->send(key("a", {loop, 0}), td::Array::scalar(10.0f), false);
  meet->send(key("a", {loop, 1}), td::Array(), true);
  meet->recv_async(key("a", {loop, 1}), nullptr, second.done());
  meet->recv_async(key("a", {loop, 0}), nullptr, first.done());
  EXPECT_TRUE(second.is_dead);
  EXPECT_FALSE(first.is_dead);
  EXPECT_EQ(*first.value.data<float>(), 10.0f);
}

TEST(Rendezvous, RefusesKeysThatAreSentOrReceivedTwice) {
  Received first, second;
  td::Ref<td::LocalRendezvous> meet = td::make_ref<td::LocalRendezvous>();
  meet->send(key("a"), td::Array::scalar(1.0f), false);
  try {
    meet->send(key("a"), td::Array::scalar(1.0f), false);
    ADD_FAILURE();
  } catch (const td::AlreadyExistsError& error) {
    EXPECT_THAT(error.what(), HasSubstr(key("a").text()));
  }
  meet->recv_async(key("b"), nullptr, first.done());
  meet->recv_async(key("b"), nullptr, second.done());
  EXPECT_EQ(first.calls, 0);
  EXPECT_EQ(td::code_of(second.error), td::Code::kAlreadyExists);
}

TEST(Rendezvous, AnAbortEndsWhatWaitsAndAllThatFollows) {
  Received waiting, later;
  td::Ref<td::LocalRendezvous> meet = td::make_ref<td::LocalRendezvous>();
  meet->send(key("lost"), td::Array::scalar(1.0f), false);
  meet->recv_async(key("a"), nullptr, waiting.done());
  meet->start_abort(std::make_exception_ptr(td::InvalidArgumentError("first")));
  meet->start_abort(std::make_exception_ptr(td::InternalError("second")));
  EXPECT_EQ(td::message_of(waiting.error), "first");
  meet->recv_async(key("lost"), nullptr, later.done());
  EXPECT_EQ(td::message_of(later.error), "first");
  EXPECT_THROW(meet->send(key("b"), td::Array::scalar(1.0f), false), td::InvalidArgumentError);
  EXPECT_THAT(meet->unreceived(), IsEmpty());
}

TEST(Rendezvous, NamesWhoShouldHaveSent) {
  Received waiting, later, sent;
  td::Ref<td::LocalRendezvous> meet = td::make_ref<td::LocalRendezvous>();
  meet->send(key("sent"), td::Array::scalar(1.0f), false);
  meet->recv_async(key("a"), nullptr, waiting.done());
  meet->close_source("/job:ps/replica:0/task:0");
  meet->recv_async(key("b"), nullptr, later.done());
  meet->recv_async(key("sent"), nullptr, sent.done());
  for (const Received* r : {&waiting, &later}) {
    ASSERT_EQ(td::code_of(r->error), td::Code::kInternal);
    EXPECT_THAT(td::message_of(r->error), HasSubstr(std::string(kPs) + " should have sent it"));
  }
  EXPECT_THAT(td::message_of(waiting.error), HasSubstr(key("a").text()));
  EXPECT_EQ(*sent.value.data<float>(), 1.0f);
}

TEST(Rendezvous, DoesNotWaitWhereTheStepIsCancelled) {
  Received received;
  td::Ref<td::LocalRendezvous> meet = td::make_ref<td::LocalRendezvous>();
  td::Cancellation cancellation;
  cancellation.cancel();
  meet->recv_async(key("a"), &cancellation, received.done());
  ASSERT_EQ(received.calls, 1);
  EXPECT_EQ(td::code_of(received.error), td::Code::kCancelled);
  EXPECT_THAT(meet->unanswered(), IsEmpty());
}

TEST(Rendezvous, ACancellationEndsReceivesThatWait) {
  Received served, waiting;
  td::Ref<td::LocalRendezvous> meet = td::make_ref<td::LocalRendezvous>();
  td::Cancellation cancellation;
  meet->recv_async(key("a"), &cancellation, served.done());
  meet->recv_async(key("b"), &cancellation, waiting.done());
  meet->send(key("a"), td::Array::scalar(1.0f), false);
  cancellation.cancel();
  EXPECT_EQ(served.calls, 1);
  EXPECT_FALSE(served.error);
  ASSERT_EQ(waiting.calls, 1);
  EXPECT_EQ(td::code_of(waiting.error), td::Code::kCancelled);
  EXPECT_THAT(td::message_of(waiting.error), HasSubstr(std::string("before ") + kPs));
  EXPECT_THAT(meet->unanswered(), IsEmpty());
}

TEST(Rendezvous, ServesManyThreads) {
  td::Ref<td::LocalRendezvous> meet = td::make_ref<td::LocalRendezvous>();
  constexpr int kValues = 2000;
  std::atomic<int> sum{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (int i = t; i < kValues; i += 2)
        meet->send(key(std::to_string(i)), td::Array::scalar(i), false);
    });
    threads.emplace_back([&, t] {
      for (int i = t; i < kValues; i += 2) {
        meet->recv_async(key(std::to_string(i)), nullptr,
                         [&](std::exception_ptr error, td::Array value, bool) {
                           if (!error) sum += *value.data<int>();
                         });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum.load(), kValues * (kValues - 1) / 2);
  EXPECT_THAT(meet->unreceived(), IsEmpty());
}

}  // namespace
