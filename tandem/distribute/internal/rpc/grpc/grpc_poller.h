#pragma once

#include <memory>
#include <utility>

#include <grpcpp/completion_queue.h>

#include "tandem/distribute/internal/rpc/grpc/tag.h"
#include "tandem/distribute/internal/rpc/poller.h"

namespace tandem::distribute {

/// The threads that wait for a completion queue of gRPC, whose tags point to `PollerEvent`s.
/// Operations that are left at the end complete without success.
class GrpcPoller {
 public:
  explicit GrpcPoller(std::unique_ptr<grpc::CompletionQueue> queue)
      : queue_(*queue), poller_(std::make_unique<Queue>(std::move(queue))) {}

  grpc::CompletionQueue& queue() { return queue_; }

 private:
  class Queue final : public EventQueue {
   public:
    explicit Queue(std::unique_ptr<grpc::CompletionQueue> queue) : queue_(std::move(queue)) {}
    bool next(PollerEvent*& event, bool& ok) override {
      void* tag = nullptr;
      if (!queue_->Next(&tag, &ok)) return false;
      event = &event_of(tag);
      return true;
    }
    void shut_down() override { queue_->Shutdown(); }

   private:
    const std::unique_ptr<grpc::CompletionQueue> queue_;
  };

  grpc::CompletionQueue& queue_;
  Poller poller_;
};

}  // namespace tandem::distribute
