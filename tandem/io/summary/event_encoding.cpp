#include "tandem/io/internal/event_encoding.h"

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstring>

#include "tandem/core/never_destroyed.h"
#include "tandem/io/internal/tensor_proto.h"
#include "tandem/io/internal/wire.h"
#include "tandem/io/proto/messages.h"

namespace tandem::io {
namespace {

// Events are written field by field: a message built of structs takes ten times as long, and
// scalars come by the million.

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void put_bytes(std::string& out, int field, std::string_view bytes) {
  put_varint(out, static_cast<std::uint64_t>(field) << 3 | 2);
  put_varint(out, bytes.size());
  out += bytes;
}

std::size_t size_of_varint(std::uint64_t value) {
  std::size_t size = 1;
  for (; value >= 0x80; value >>= 7) ++size;
  return size;
}

// The whole field, with its tag: for field numbers below 16.
std::size_t size_of_bytes(std::size_t size) { return 1 + size_of_varint(size) + size; }

void put_head(std::string& out, double wall_time, std::int64_t step) {
  out.clear();
  char time[9] = {0x09};
  std::memcpy(time + 1, &wall_time, sizeof(wall_time));
  out.append(time, sizeof(time));
  if (step != 0) {
    out += '\x10';
    put_varint(out, static_cast<std::uint64_t>(step));
  }
}

// Field 5 of an Event: a Summary of one Value.
void put_value(std::string& out, const std::string& tag, std::string_view tensor,
               std::string_view metadata) {
  const std::size_t value = size_of_bytes(tag.size()) + size_of_bytes(tensor.size()) +
                            (metadata.empty() ? 0 : size_of_bytes(metadata.size()));
  out += '\x2a';
  put_varint(out, size_of_bytes(value));
  out += '\x0a';
  put_varint(out, value);
  put_bytes(out, 1, tag);
  put_bytes(out, 8, tensor);
  if (!metadata.empty()) put_bytes(out, 9, metadata);
}

std::string_view metadata_of(const PendingEvent& event) {
  if (event.metadata) return *event.metadata;
  if (event.kind != PendingEvent::Kind::kScalar) return {};
  static const NeverDestroyed<std::string> scalars([] { return summary_metadata("scalars"); });
  return *scalars;
}

}  // namespace

double wall_time_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string host_name() {
  char name[256] = "localhost";
  if (gethostname(name, sizeof(name) - 1) != 0 || name[0] == '\0') return "localhost";
  return name;
}

std::string summary_metadata(std::string_view plugin, std::string_view content,
                             std::string_view description, std::string_view display_name) {
  proto::SummaryMetadata metadata;
  metadata.plugin_data.make().plugin_name = plugin;
  metadata.plugin_data.make().content = content;
  metadata.summary_description = description;
  metadata.display_name = display_name;
  return proto::WireWriter::write(metadata);
}

std::string file_version_event(double wall_time) {
  proto::Event event;
  event.wall_time = std::floor(wall_time);
  event.which_what = proto::Event::Case::kFileVersion;
  event.file_version = "brain.Event:2";
  event.source_metadata.make().writer = "tandem";
  return proto::WireWriter::write(event);
}

void encode_event(const PendingEvent& event, std::string& out) {
  if (event.kind == PendingEvent::Kind::kEvent) {
    out = event.text;
    return;
  }
  put_head(out, event.wall_time, event.step);
  switch (event.kind) {
    case PendingEvent::Kind::kScalar: {
      // TensorProto: dtype FLOAT, a shape without dimensions, four bytes of tensor_content.
      char tensor[10] = {0x08, 0x01, 0x12, 0x00, 0x22, 0x04};
      std::memcpy(tensor + 6, &event.number, sizeof(event.number));
      put_value(out, event.text, {tensor, sizeof(tensor)}, metadata_of(event));
      return;
    }
    case PendingEvent::Kind::kTensor: {
      proto::TensorProto tensor;
      encode_tensor(event.tensor, tensor);
      put_value(out, event.text, proto::WireWriter::write(tensor), metadata_of(event));
      return;
    }
    case PendingEvent::Kind::kSummary: put_bytes(out, 5, event.text); return;
    case PendingEvent::Kind::kGraph: put_bytes(out, 4, event.text); return;
    case PendingEvent::Kind::kEvent: return;
  }
}

}  // namespace tandem::io
