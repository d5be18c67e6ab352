#include "tandem/distribute/internal/client/create_parameters.h"

#include <utility>

#include "tandem/distribute/internal/parameters/parameter_service.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/internal/wire/request_ids.h"
#include "tandem/distribute/internal/wire/tensor_message.h"
#include "tandem/distribute/proto/parameters.h"

namespace tandem::distribute {
namespace {

constexpr int kParameterField = 1, kPartField = 2;  // of CreateParametersRequest, UploadRequest

proto::CreateParametersResponse read_response(Bytes reply) {
  proto::CreateParametersResponse response;
  read_message(reply, response);
  return response;
}

}  // namespace

proto::CreateParametersResponse create_parameters(
    const std::function<Bytes(const char* method, Bytes request)>& call,
    const proto::CreateParametersRequest& request, const Parameters& variables,
    const std::set<std::string>& state, std::size_t max_part_bytes) {
  std::size_t size = 0;
  for (const auto& [name, variable] : variables) size += variable.value.num_bytes();
  if (size <= max_part_bytes) {
    Bytes message = write_message(request);
    for (const auto& [name, variable] : variables) {
      proto::NamedValue head;
      head.name = name;
      head.state = state.contains(name);
      Bytes parameter = write_message(head);
      append_tensor_field(parameter, 2, variable.value);
      append_bytes_field(message, kParameterField, std::move(parameter));
    }
    return read_response(call(kCreateParameters, std::move(message)));
  }
  proto::CreateParametersRequest heads = request;
  heads.head = heads_of(variables);
  for (proto::ParameterHead& head : heads.head) head.state = state.contains(head.name);
  heads.upload = new_handle();
  const auto response = read_response(call(kCreateParameters, write_message(heads)));
  if (!response.awaits_values) return response;
  proto::UploadRequest upload;
  upload.upload = heads.upload;
  upload.home = request.home;
  PartSender parts(variables, max_part_bytes);
  for (;;) {
    Bytes message = write_message(upload);
    if (!parts.append_next(message, kPartField, variables)) break;
    call(kUploadParameters, std::move(message));
  }
  heads.uploaded = true;
  return read_response(call(kCreateParameters, write_message(heads)));
}

}  // namespace tandem::distribute
