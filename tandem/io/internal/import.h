#pragma once

#include "tandem/io/graph_def.h"
#include "tandem/io/proto/messages.h"

namespace tandem::io {

/// The graph of a message. Its constants lose their values as they are read.
ImportedGraph import_message(proto::GraphDef& def, const ImportOptions& options);

}  // namespace tandem::io
