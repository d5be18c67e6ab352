#pragma once

/// Datasets and what they are made from.

#include "tandem/data/contact_sheet.h"
#include "tandem/data/csv_dataset.h"
#include "tandem/data/dataset.h"
#include "tandem/data/digits.h"
#include "tandem/data/explain.h"
#include "tandem/data/file_datasets.h"
#include "tandem/data/fuse.h"
#include "tandem/data/idx.h"
#include "tandem/data/image_file.h"
#include "tandem/data/names.h"
#include "tandem/data/pipeline_stats.h"
#include "tandem/data/ragged_datasets.h"
#include "tandem/data/sharding.h"
