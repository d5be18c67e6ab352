#pragma once

#include "tandem/fs/file_systems.h"
#include "tandem/fs/stores.h"

/// File systems of further schemes. Wherever a path is taken, by datasets, checkpoints, `.npy`
/// files and the tool, it may begin with "s3://", "gs://", "http://", "https://" or "ram://", or
/// with a scheme that the program has registered; docs/file-systems.md.
namespace tandem::io {

using fs::DirectoryEntry;
using fs::FileInfo;
using fs::FileSystem;
using fs::make_store;
using fs::ReadableFile;
using fs::register_file_system;
using fs::StagedFile;
using fs::StoreOptions;
using fs::WritableFile;

}  // namespace tandem::io
