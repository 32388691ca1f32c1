// Stands for @grafana/assistant, which the flame graph imports and shows only if its options request it.
export const OpenAssistantButton = () => null;
