#include "tests/simulation/message_text.h"

#include "tandem/core/error.h"
#include "tandem/distribute/internal/parameters/parameter_service.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/proto/parameters.h"

namespace tandem::simulation {
namespace {

using distribute::Bytes;
using distribute::read_message;
namespace proto = distribute::proto;

std::string view_text(const proto::ReplicaView& view) {
  std::string text = cat("view ", view.epoch, " [");
  for (const std::string& task : view.chain) text += cat(" ", short_name(task));
  return text + " ]";
}

std::string state_text(const proto::ReplicaState& state) {
  std::string text = cat(short_name(state.home), ": ", view_text(*state.view));
  if (state.state_id.empty()) text += " empty";
  if (state.active) text += " active";
  if (state.linked) text += " linked";
  if (state.broken) text += " broken";
  return text;
}

std::string item_text(const proto::ForwardRequest& message) {
  if (message.keep) return "keep the state";
  if (message.complete) return "the state is complete";
  proto::UpdateRecord record;
  distribute::read_part(message.record, record);
  if (record.head.has()) return cat("a state at ", record.head->position);
  if (!record.part.empty()) {
    const proto::StatePart& first = record.part.front();
    return cat(record.part.size(), " parts from ", first.parameter, ".", first.array, " byte ",
               first.offset);
  }
  return cat("an update of view ", record.epoch);
}

}  // namespace

std::string short_name(const std::string& node) {
  const std::string job = "/job:ps/replica:0/task:";
  return node.starts_with(job) ? "ps" + node.substr(job.size()) : node;
}

std::string request_text(std::string_view method, const std::string& request) {
  Bytes bytes(request);
  const std::string name(method.substr(method.rfind('/') + 1));
  proto::HomeOfRequest of;
  read_message(bytes, of);
  const std::string what = cat(name, " ", short_name(of.home));
  if (method == distribute::kPushGradients) {
    proto::PushRequest message;
    read_message(bytes, message);
    return cat(what, " closure ", message.sequence, ", of version ", message.version,
               ", finished below ", message.finished_below);
  }
  if (method == distribute::kSetView) {
    proto::SetViewRequest message;
    read_message(bytes, message);
    return cat(what, " ", view_text(*message.view), " since ", message.since,
               message.confirmed ? " confirmed" : "");
  }
  if (method == distribute::kInstallReplica) {
    proto::InstallRequest message;
    read_message(bytes, message);
    return cat(what, " ", view_text(*message.view));
  }
  if (method == distribute::kForwardRecord) {
    proto::ForwardRequest message;
    read_message(bytes, message);
    return cat(what, " of view ", message.epoch, ", item ", message.order, ": ",
               item_text(message));
  }
  return what;
}

std::string reply_text(std::string_view method, const distribute::Status& status,
                       const distribute::Bytes& reply) {
  if (!status.ok()) return status.message;
  Bytes bytes = reply;
  if (method == distribute::kPullParameters) {
    proto::PullResponse message;
    read_message(bytes, message);
    return cat("version ", message.version, message.rest.has() ? ", and there is more" : "");
  }
  if (method == distribute::kPushGradients) {
    proto::PushResponse message;
    read_message(bytes, message);
    return cat("version ", message.version, message.stale ? " stale" : "",
               message.duplicate ? " duplicate" : "");
  }
  if (method == distribute::kLocateParameters) {
    proto::LocateResponse message;
    read_message(bytes, message);
    return message.empty ? "has nothing" : "serves";
  }
  if (method == distribute::kDescribeParameters) {
    proto::DescribeResponse message;
    read_message(bytes, message);
    std::string text;
    for (const proto::ReplicaState& state : message.state) text += state_text(state) + "; ";
    return text;
  }
  if (method == distribute::kSetView || method == distribute::kInstallReplica ||
      method == distribute::kForwardRecord) {
    proto::ReplicaResponse message;
    read_message(bytes, message);
    return cat(message.accepted ? "accepted" : "refused", " in view ", message.epoch,
               message.empty ? ", has nothing" : "",
               method == distribute::kInstallReplica
                   ? cat(", at ", message.position, " of view ", message.position_epoch)
                   : std::string());
  }
  return "done";
}

}  // namespace tandem::simulation
