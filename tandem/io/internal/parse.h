#pragma once

#include <string>
#include <string_view>

#include "tandem/io/graph_def.h"
#include "tandem/io/proto/messages.h"

namespace tandem::io {

/// The message that the bytes hold; throws DataLossError. Errors call it `name`.
proto::GraphDef parse_graph_def(std::string_view bytes, GraphFormat format,
                                const std::string& name);

}  // namespace tandem::io
