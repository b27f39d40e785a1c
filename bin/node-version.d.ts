export declare const OLDEST_NODE: string;
export declare function isNodeNewEnough(): boolean;
export declare function explainOldNode(): string;
