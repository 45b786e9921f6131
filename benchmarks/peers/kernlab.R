# Reads one line per run ("passes"); answers with seconds, for both sides to be timed in turn.
# The first line that it prints has the version, the start and the result after two passes.
suppressMessages(library(kernlab))
arguments <- commandArgs(trailingOnly = TRUE)
X <- as.matrix(read.csv(arguments[1], header = FALSE))
gamma <- as.numeric(arguments[2])
features <- as.integer(arguments[3])
eta <- as.numeric(arguments[4])

components <- function(passes) {
  set.seed(1)
  kha(X, kernel = "rbfdot", kpar = list(sigma = gamma), features = features, eta = eta,
      th = 0, maxiter = passes)
}

set.seed(1)
start <- matrix(runif(features * nrow(X)), nrow(X), features) * 2 - 1  # as kha draws it
write.table(start, arguments[5], sep = ",", row.names = FALSE, col.names = FALSE)
write.table(pcv(components(2)), arguments[6], sep = ",", row.names = FALSE, col.names = FALSE)
cat(sprintf('{"version": "%s"}\n', as.character(packageVersion("kernlab"))))
flush(stdout())

input <- file("stdin", "r")
while (length(line <- readLines(input, n = 1)) > 0) {
  passes <- as.integer(line)
  seconds <- system.time(components(passes))[["elapsed"]]
  cat(sprintf('{"seconds": %.6f}\n', seconds))
  flush(stdout())
}
