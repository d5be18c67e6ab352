#include "tandem/device/task_stream.h"

namespace tandem {

StreamTask::~StreamTask() = default;
TaskStream::~TaskStream() = default;

TaskStream* task_stream(Device& device) {
  return dynamic_cast<TaskStream*>(&device.stream(StreamKind::kCompute));
}

}  // namespace tandem
