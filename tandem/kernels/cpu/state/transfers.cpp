// Sends and receives between the parts of a step, by its rendezvous.

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/rendezvous.h"

namespace tandem::cpu {
namespace {

RendezvousKey key_of(const KernelContext& c) {
  return {c.attr<std::string>("send_device"),
          static_cast<std::uint64_t>(c.attr<std::int64_t>("send_device_incarnation")),
          c.attr<std::string>("recv_device"), c.attr<std::string>("tensor_name"),
          c.frame_iteration()};
}

Rendezvous& rendezvous_of(const KernelContext& c) {
  if (c.rendezvous() == nullptr) {
    throw FailedPreconditionError(
        cat("'", c.attr<std::string>("tensor_name"), "' cannot be exchanged between ",
            c.attr<std::string>("send_device"), " and ", c.attr<std::string>("recv_device"),
            ": the step has no rendezvous. Only parts of a partitioned graph send and receive."));
  }
  return *c.rendezvous();
}

void send(KernelContext& c) {
  rendezvous_of(c).send(key_of(c), c.input_dead() ? Array() : c.input(0), c.input_dead());
}

void receive(KernelContext& c, KernelDone done) {
  Rendezvous& rendezvous = rendezvous_of(c);
  const RendezvousKey key = key_of(c);
  rendezvous.recv_async(
      key, c.cancellation(),
      [&c, done = std::move(done)](std::exception_ptr error, Array value, bool is_dead) {
        try {
          if (error) std::rethrow_exception(error);
          if (is_dead) {
            c.set_outputs_dead();
          } else if (value.dtype() != c.output_dtype(0)) {
            throw InvalidArgumentError(cat("Received a value of ", value.dtype(), " where ",
                                           c.output_dtype(0), " is expected."));
          } else {
            c.set_output(0, std::move(value));
          }
        } catch (...) {
          return done(std::current_exception());
        }
        done(nullptr);
      });
}

const KernelRegistration kSend{{.op = "_Send", .run = send}};
const KernelRegistration kHostSend{{.op = "_HostSend", .run = send}};
const KernelRegistration kRecv{{.op = "_Recv", .run_async = receive}};
const KernelRegistration kHostRecv{{.op = "_HostRecv", .run_async = receive}};

}  // namespace
}  // namespace tandem::cpu
