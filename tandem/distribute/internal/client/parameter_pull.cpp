#include "tandem/distribute/internal/client/parameter_pull.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/parameters/parameter_service.h"
#include "tandem/distribute/internal/parameters/state_parts.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/internal/wire/tensor_message.h"
#include "tandem/distribute/proto/parameters.h"

namespace tandem::distribute {
namespace {

constexpr int kFromField = 6;  // of PullRequest

class Pull : public std::enable_shared_from_this<Pull> {
 public:
  Pull(std::shared_ptr<ParameterClient> client, Bytes request,
       std::shared_ptr<const Cancellation> cancellation,
       std::function<void(Status, PulledParameters)> done)
      : client_(std::move(client)),
        request_(std::move(request)),
        cancellation_(std::move(cancellation)),
        done_(std::move(done)) {}

  void ask() {
    Bytes request = request_;
    if (is_begun_) append_bytes_field(request, kFromField, write_message(from_));
    client_->call(kPullParameters, std::move(request), cancellation_,
                  [self = shared_from_this()](Status status, Bytes reply) {
                    bool ended = true;
                    try {
                      if (status.ok()) ended = self->take(reply);
                    } catch (...) {
                      status = Status::of(std::current_exception());
                    }
                    if (!ended) return self->ask();
                    self->done_(std::move(status), std::move(self->pulled_));
                  });
  }

 private:
  // False if there is more.
  bool take(Bytes& reply) {
    proto::PullResponse response;
    read_message(reply, response);
    if (is_begun_ && response.term != pulled_.term) {
      // Another task has taken over, and may lack what the first one had not acknowledged.
      pulled_ = {};
      is_begun_ = false;
      return false;
    }
    if (!is_begun_) {
      pulled_.version = response.version;
      pulled_.term = response.term;
      is_begun_ = true;
    }
    for (const proto::NamedValue& value : response.parameter)
      pulled_.values[value.name] = read_tensor(value.value, reply.owner());
    for (const proto::NamedValue& rows : response.rows)
      pulled_.rows[rows.name] = read_tensor(rows.value, reply.owner());
    for (const proto::PulledPart& part : response.part) {
      Array& value = (part.rows ? pulled_.rows : pulled_.values)[part.head->name];
      if (part.offset == 0) value = uninitialized_of(*part.head);
      if (!value.valid())
        throw InternalError("A parameter server has sent a variable without its beginning.");
      write_contents(value, part.offset, part.contents);
    }
    from_ = *response.rest;
    return !response.rest.has();
  }

  const std::shared_ptr<ParameterClient> client_;
  const Bytes request_;
  const std::shared_ptr<const Cancellation> cancellation_;
  const std::function<void(Status, PulledParameters)> done_;
  bool is_begun_ = false;
  proto::PullPosition from_;
  PulledParameters pulled_;
};

}  // namespace

void pull_parameters(std::shared_ptr<ParameterClient> client, Bytes request,
                     std::shared_ptr<const Cancellation> cancellation,
                     std::function<void(Status, PulledParameters)> done) {
  std::make_shared<Pull>(std::move(client), std::move(request), std::move(cancellation),
                         std::move(done))
      ->ask();
}

}  // namespace tandem::distribute
